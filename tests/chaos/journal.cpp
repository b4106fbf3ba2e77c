// SPDX-License-Identifier: Apache-2.0
// Writes the lines of a journal, and reads a candidate's arguments.
#include "journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/wait.hpp>

namespace tenure::test {
namespace {

/// By Ousting::remaining(); 0: it may not.
std::string works_until(const Ousting& ousting) {
  const auto now = boot_clock().now();
  const auto left = ousting.remaining();  // None, where we were stopped for so long that nothing may run any more.
  return nanoseconds("until", left > Clock::Duration::zero() ? now + left : Clock::Time{});
}

}  // namespace

Journal::Journal(const std::string& path) : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
}

void Journal::write(Clock::Time at, const std::string& event, const std::string& fields) const {
  const auto line = "{\"t\":" + std::to_string(at.time_since_epoch().count()) +
                    ",\"pid\":" + std::to_string(::getpid()) + ",\"event\":\"" + event + "\"" +
                    (fields.empty() ? "" : ",") + fields + "}\n";
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

void Journal::start(const std::string& name, const Timing& timing) const {
  now("start", "\"name\":" + json_text(name) + ",\"term\":" + std::to_string(timing.term.count()) +
                   ",\"margin\":" + std::to_string(timing.margin.count()));
}

std::string json_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text, 400)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return '"' + out + '"';
}

std::string token_field(Token token) { return "\"token\":" + std::to_string(token.value); }

std::string election_field(const std::string& election) { return ",\"election\":" + json_text(election); }

std::string nanoseconds(const char* name, Clock::Time at) {
  return ",\"" + std::string(name) + "\":" + std::to_string(at.time_since_epoch().count());
}

Hooks noting(const Journal& journal, const Options& args, bool many) {
  const auto which = [many](Token token, const std::string& election) {
    return token_field(token) + (many ? election_field(election) : "");
  };
  Hooks hooks;
  hooks.elected = [&journal, which](const Elected& e) { journal.now("elected", which(e.token, e.election)); };
  hooks.ousting = [&journal, which, work = std::chrono::milliseconds(args.number("--work-ms"))](const Ousting& o) {
    journal.now("ousting", which(o.token, o.election) + ",\"reason\":" + json_text(to_string(o.reason)) +
                               ",\"detail\":" + json_text(o.detail) + works_until(o));
    if (work.count() > 0) wait_out({boot_clock(), boot_clock().now() + work, o.expired});
    journal.now("ended", which(o.token, o.election));
  };
  hooks.error = [&journal](const Error& e) {
    journal.now("error", "\"fault\":" + json_text(to_string(e.fault)) + ",\"message\":" + json_text(e.message));
  };
  return hooks;
}

Options told(int argc, char** argv, const std::map<std::string, std::optional<std::string>>& more) {
  std::map<std::string, std::optional<std::string>> known{
      {"--store", std::nullopt}, {"--election", std::nullopt}, {"--log", std::nullopt}, {"--name", std::nullopt},
      {"--preset", ""},          {"--term-ms", "0"},           {"--call-ms", "0"},      {"--renew-ms", "0"},
      {"--sample-us", "1000"},   {"--note-ms", "0"},           {"--work-ms", "0"},      {"--elections", "0"}};
  known.insert(more.begin(), more.end());
  return {argc, argv, known};
}

Timing timing_of(const Options& told, const Presets& presets) {
  const auto& name = told.text("--preset");
  if (name == "fast") return presets.fast;
  if (name == "balanced") return presets.balanced;
  if (name == "steady") return presets.steady;
  if (!name.empty()) throw std::invalid_argument("--preset " + name + ": fast, balanced or steady");
  const auto ms = [&told](const char* option) { return std::chrono::milliseconds(told.number(option)); };
  auto timing = Timing::of(ms("--term-ms"));
  if (const auto call = ms("--call-ms"); call.count() > 0) timing.call = call;
  if (const auto renew = ms("--renew-ms"); renew.count() > 0) timing.renew = renew;
  return timing;
}

}  // namespace tenure::test
