// SPDX-License-Identifier: Apache-2.0
// Follows the parser from event to event, so that limits and double keys are seen.
#include "parse.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace tenure {
namespace {

using nlohmann::json;

constexpr std::size_t max_depth = 8;

[[noreturn]] void refuse(const std::string& message) { throw InvalidDocument({{"", message}}); }

/// Knows from the parser's events where it stands.
class Watcher {
 public:
  explicit Watcher(std::vector<Finding>& findings) : findings_(findings) {}

  void saw(json::parse_event_t event, const json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (open_.size() == max_depth)
          refuse("is nested too deeply; " + std::to_string(max_depth) + " levels are allowed");
        open_.push_back({});
        break;
      case json::parse_event_t::key: {
        auto& keys = open_.back().keys;
        open_.back().at = value.get<std::string>();
        if (!keys.insert(open_.back().at).second)
          findings_.push_back({pointer(), "stands twice in its object; give it once"});
        break;
      }
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end: open_.pop_back(); break;
      case json::parse_event_t::value: break;
    }
  }

 private:
  struct Open {
    std::string at;  ///< The key being read. An array that may stand has no objects in it, so no index is counted.
    std::set<std::string> keys;
  };

  std::string pointer() const {
    std::string out;
    for (const auto& [at, keys] : open_) out = step(out, keys.empty() ? "-" : at);
    return out;
  }

  std::vector<Finding>& findings_;
  std::vector<Open> open_;
};

std::string place(std::string_view text, std::size_t byte) {
  const auto before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == before.npos ? 0 : start + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

json parse_json(std::string_view text, std::vector<Finding>& findings) {
  if (text.size() > max_document_bytes)
    refuse("has " + std::to_string(text.size()) + " bytes; at most " + std::to_string(max_document_bytes) +
           " are allowed");
  Watcher watcher(findings);
  try {
    return json::parse(text.begin(), text.end(), [&](int, json::parse_event_t event, json& value) {
      watcher.saw(event, value);
      return true;
    });
  } catch (const json::parse_error& e) {
    refuse("is not JSON: it cannot be read at " + place(text, e.byte) +
           " (the text is not shown, because it may be a secret)");
  } catch (const json::exception&) {
    refuse("has a number that is too large");
  }
}

std::string shown(std::string_view key) {
  const auto of_name = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '$'; };
  return key.size() <= 64 && std::all_of(key.begin(), key.end(), of_name) ? std::string(key) : "***";
}

std::string step(const std::string& pointer, std::string_view key) { return pointer + "/" + shown(key); }

}  // namespace tenure
