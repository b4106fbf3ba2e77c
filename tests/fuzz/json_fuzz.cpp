// SPDX-License-Identifier: Apache-2.0
// A document: any text is accepted or refused. A refusal has findings with well-formed pointers and printable
// messages. No message repeats the value of an environment variable, a file or a password, although the store repeats
// everything. A log line is one object that says the same. A duration is what it was read from.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <variant>

#include <tenure/json_group.hpp>
#include <tenure/json_log.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "fuzz.hpp"
#include "value.hpp"

namespace tenure::fuzz {
namespace {

constexpr auto secret = "s3cr3t: canary";

Opened quiet(const Opening& opening) {
  return {.backend = memory::open(memory::Hub(), opening.election, opening.candidate), .presets = lock_table_presets()};
}

OpenedGroup quiet_group(const Opening& opening) {
  return {.store = memory::Hub().group(opening.election), .presets = lock_table_presets()};
}

template <class Result>
Result gossip(const Opening& opening) {
  auto all = opening.url + opening.user + opening.password;
  for (const auto& [name, value] : opening.properties) all += value;
  throw std::invalid_argument(all);
}

void check(const InvalidDocument& refusal, bool store_spoke, bool secret_given) {
  require(!refusal.findings().empty(), "a refusal has findings");
  for (const auto& [pointer, message] : refusal.findings()) {
    require(pointer.empty() || pointer.front() == '/', "a pointer is empty or begins with '/'");
    require(printable_text(pointer), "a pointer is printable");
    require(!message.empty() && (store_spoke || printable_text(message)), "a message is printable");
  }
  require(secret_given || !contains(refusal.what(), secret), "no message repeats a secret");
}

/// `read` is from_json() or group_from_json().
template <class Read>
void try_document(const std::string& text, bool store_speaks, Read read) {
  try {
    read().timing.validate();
    require(!store_speaks, "what is accepted is opened");
  } catch (const InvalidDocument& e) {
    check(e, store_speaks, contains(text, secret));
  }
}

void document(const std::string& text) {
  static const bool ready = ::setenv("TENURE_FUZZ", secret, 1) == 0;
  require(ready, "the environment takes a variable");
  try_document(text, false, [&] { return from_json(text, quiet); });
  try_document(text, true, [&] { return from_json(text, gossip<Opened>); });
  try_document(text, false, [&] { return group_from_json(text, quiet_group); });
  try_document(text, true, [&] { return group_from_json(text, gossip<OpenedGroup>); });
}

void log(const std::string& text) {
  Lines lines(text);
  const auto name = lines.next();
  const auto written = to_json(LogLine{Level::warning, lines.rest(), {{name, text}}});
  for (const char c : written) require(static_cast<unsigned char>(c) >= 0x20, "a line is one line");
  const auto read = nlohmann::json::parse(written);
  const auto message = name == "message" ? read : nlohmann::json{{"message", read.at("message")}};
  require(message.at("message") == utf8(lines.rest()), "it says the same");
  require(name == "message" || name == "level" || read.at(utf8(name)) == utf8(text), "its fields say the same");
}

void duration(const std::string& text) {
  const auto value = duration_of(text);
  if (!value) return require(printable_text(value.error().message), "a refusal is printable");
  const auto ns = *value;
  require(ns >= Clock::Duration::zero() && ns <= std::chrono::hours(1), "a duration is an hour at most");
  require(*duration_of(std::to_string(ns.count()) + "ns") == ns, "it is read again");
}

}  // namespace

const std::vector<Target> targets{{"json_document", document}, {"json_log", log}, {"json_duration", duration}};

}  // namespace tenure::fuzz
