// SPDX-License-Identifier: Apache-2.0
// Words for enumerators, names checked.
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <tenure/candidate.hpp>
#include <tenure/error.hpp>
#include <tenure/hooks.hpp>
#include <tenure/log.hpp>

#include "random.hpp"

namespace tenure {

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::unreachable: return "unreachable";
    case Fault::timed_out: return "timed out";
    case Fault::wedged: return "wedged";
    case Fault::deposed: return "deposed";
    case Fault::forbidden: return "forbidden";
    case Fault::misconfigured: return "misconfigured";
    case Fault::corrupt: return "corrupt";
    case Fault::hook_threw: return "hook threw";
    case Fault::hook_overran: return "hook overran";
  }
  return "?";
}

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::lapsed: return "lapsed";
    case Reason::superseded: return "superseded";
    case Reason::recalled: return "recalled";
    case Reason::resigned: return "resigned";
    case Reason::stopped: return "stopped";
    case Reason::ineligible: return "ineligible";
  }
  return "?";
}

namespace {

void check_length(const char* what, std::string_view text, std::size_t least, std::size_t most) {
  if (text.size() >= least && text.size() <= most && text.find('\0') == text.npos) return;
  throw std::invalid_argument(std::string(what) + " has " + std::to_string(text.size()) + " bytes" +
                              (text.find('\0') == text.npos ? "" : " and a NUL among them") + "; " +
                              std::to_string(least) + " to " + std::to_string(most) +
                              " bytes without NUL are allowed: \"" + printable(text, 40) + "\"");
}

std::string default_name() {
  char host[65] = "host";
  ::gethostname(host, sizeof host - 1);
  return std::string(host).substr(0, 60) + "_" + std::to_string(::getpid()) + "_" +
         std::to_string(boot_clock().unix_ms() / 1000);
}

}  // namespace

Candidate checked(Candidate candidate) {
  if (candidate.name.empty()) candidate.name = default_name();
  check_length("candidate.name", candidate.name, 1, max_candidate_bytes);
  check_length("candidate.address", candidate.address, 0, max_candidate_bytes);
  return candidate;
}

void check_election(std::string_view name) { check_length("election", name, 1, max_election_bytes); }

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  // Up to 256 bytes come whole; a signal may only interrupt it before the kernel's pool is first filled.
  while (::getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  return value;
}

std::string draw_incarnation() {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (int half = 0; half < 2; ++half)
    for (auto bits = random_u64(), left = std::uint64_t{16}; left-- > 0; bits >>= 4) out += digits[bits & 15];
  return out;
}

}  // namespace tenure
