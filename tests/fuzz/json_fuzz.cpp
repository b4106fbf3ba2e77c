// SPDX-License-Identifier: Apache-2.0
// Any text is accepted as a document or refused. A refusal has findings with well-formed pointers and printable
// messages. No message repeats the value of an environment variable, a file or a password, although the store repeats
// everything.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <tenure/json_group.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "fuzz.hpp"

namespace tenure::fuzz {
namespace {

constexpr auto canary = "s3cr3t: canary";

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

void check(const InvalidDocument& refusal, bool store_spoke, bool canary_given) {
  require(!refusal.findings().empty(), "a refusal has findings");
  for (const auto& [pointer, message] : refusal.findings()) {
    require(pointer.empty() || pointer.front() == '/', "a pointer is empty or begins with '/'");
    require(printable_text(pointer), "a pointer is printable");
    require(!message.empty() && (store_spoke || printable_text(message)), "a message is printable");
  }
  require(canary_given || std::string_view(refusal.what()).find(canary) == std::string_view::npos,
          "no message repeats a secret");
}

/// `read` is from_json() or group_from_json().
template <class Read>
void try_document(const std::string& text, bool store_speaks, Read read) {
  try {
    read().timing.validate();
    require(!store_speaks, "what is accepted is opened");
  } catch (const InvalidDocument& e) {
    check(e, store_speaks, text.find(canary) != text.npos);
  }
}

}  // namespace

}  // namespace tenure::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure::fuzz;
  static const bool ready = ::setenv("TENURE_FUZZ", canary, 1) == 0;
  require(ready, "the environment takes a variable");
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_document(text, false, [&] { return tenure::from_json(text, quiet); });
  try_document(text, true, [&] { return tenure::from_json(text, gossip<tenure::Opened>); });
  try_document(text, false, [&] { return tenure::group_from_json(text, quiet_group); });
  try_document(text, true, [&] { return tenure::group_from_json(text, gossip<tenure::OpenedGroup>); });
  return 0;
}
