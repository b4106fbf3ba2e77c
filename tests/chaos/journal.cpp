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

namespace tenure::test {

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

std::string works_until(const Ousting& ousting) {
  const auto now = boot_clock().now();
  const auto left = ousting.remaining();  // None, where we were stopped for so long that nothing may run any more.
  return nanoseconds("until", left > Clock::Duration::zero() ? now + left : Clock::Time{});
}

std::string nanoseconds(const char* name, Clock::Time at) {
  return ",\"" + std::string(name) + "\":" + std::to_string(at.time_since_epoch().count());
}

Arguments::Arguments(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name.substr(0, 2) != "--" || i + 1 >= argc) throw std::invalid_argument("expected --option value, got " + name);
    all_[name.substr(2)] = argv[i + 1];
  }
  for (const auto* needed : {"store", "election", "log", "name"})
    if (!all_.contains(needed)) throw std::invalid_argument(std::string("--") + needed + " is missing");
}

long Arguments::number(const std::string& name, long otherwise) const {
  const auto found = all_.find(name);
  return found == all_.end() ? otherwise : std::stol(found->second);
}

Timing Arguments::timing(const Presets& presets) const {
  if (!all_.contains("preset")) {
    auto timing = Timing::of(std::chrono::milliseconds(std::stol(all_.at("term-ms"))));
    const auto given = [this](const char* name, Clock::Duration& part) {
      if (all_.contains(name)) part = std::chrono::milliseconds(std::stol(all_.at(name)));
    };
    given("call-ms", timing.call);
    given("renew-ms", timing.renew);
    return timing;
  }
  const auto& name = all_.at("preset");
  if (name == "fast") return presets.fast;
  if (name == "balanced") return presets.balanced;
  if (name == "steady") return presets.steady;
  throw std::invalid_argument("--preset " + name + ": fast, balanced or steady");
}

}  // namespace tenure::test
