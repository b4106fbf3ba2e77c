// SPDX-License-Identifier: Apache-2.0
// Checks names of elections and candidates, and draws incarnations.
#include <tenure/kit/names.hpp>

#include <unistd.h>

#include <stdexcept>

#include <tenure/clock.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "kit/random.hpp"

namespace tenure {
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

std::optional<Error> refused_step_down(std::string_view by, std::string_view why) try {
  check_length("by", by, 0, max_candidate_bytes);
  check_length("why", why, 0, max_why_bytes);
  return std::nullopt;
} catch (const std::invalid_argument& e) {
  return Error{Fault::misconfigured, std::string("request_step_down: ") + e.what()};
}

std::string draw_incarnation() { return hex(random_u64()) + hex(random_u64()); }

}  // namespace tenure
