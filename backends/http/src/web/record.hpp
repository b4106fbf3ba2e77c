// SPDX-License-Identifier: Apache-2.0
// A record and a request to step down as JSON of ASCII alone: written, and read with suspicion. Pure.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/kit/who.hpp>

namespace tenure::web {

using Json = nlohmann::json;

inline constexpr int format_version = 1;

/// A text that somebody else wrote; discarded if it is no JSON. Without what lies deeper than anything of ours or of
/// etcd's, whose deepest answers have eight levels: whoever copies JSON recurses, and a stack may be small.
inline Json parsed(std::string_view text) {
  constexpr int most_depth = 16;
  return Json::parse(
      text, [](int depth, auto, auto&) { return depth <= most_depth; }, false);
}

/// The same record has always the same text. The token comes first: etcd's strict fence compares the beginning of the
/// text (fence/etcd.hpp).
inline nlohmann::ordered_json json_of(const Record& record) {
  return {{"token", record.token.value},
          {"format", format_version},
          {"beat", record.beat},
          {"who", utf8(record.who)},
          {"released", record.released},
          {"term_ms", std::chrono::ceil<std::chrono::milliseconds>(record.term).count()},
          {"asked_ns", record.asked.count()},
          {"written_ms", record.written_ms}};
}

inline Json json_of(const StepDown& request) {
  return {{"token", request.token.value},
          {"by", percent_encoded(printable(request.by.substr(0, max_candidate_bytes)))},
          {"why", percent_encoded(printable(request.why.substr(0, max_why_bytes)))}};
}

/// Reads members by name, each once, and knows whether all were there and right.
class Members {
 public:
  explicit Members(Json object) : object_(std::move(object)) {}

  std::string text(const char* name, std::size_t most) {
    const auto member = take(name);
    const auto bytes =
        member.is_string() ? percent_decoded(member.get_ref<const std::string&>(), most) : std::optional<std::string>();
    right_ = right_ && bytes;
    return bytes.value_or(std::string());
  }

  std::string who() {
    const auto member = take("who");
    const bool good = member.is_string() && member.get_ref<const std::string&>().size() <= max_who_bytes;
    right_ = right_ && good;
    return good ? member.get<std::string>() : std::string();
  }

  template <class T>
  T integer(const char* name, T most) {
    const auto member = take(name);
    const bool good = member.is_number_unsigned() && member.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    right_ = right_ && good;
    return good ? member.get<T>() : T{};
  }

  bool flag(const char* name) {
    const auto member = take(name);
    right_ = right_ && member.is_boolean();
    return member.is_boolean() && member.get<bool>();
  }

  bool all_right() const { return right_; }
  bool empty() const { return object_.empty(); }

 private:
  Json take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) return {};
    auto member = std::move(*found);
    object_.erase(found);
    return member;
  }

  Json object_;
  bool right_{true};
};

/// One that cannot be read means nothing to anybody.
inline std::optional<StepDown> step_down_of(Json object) {
  if (!object.is_object()) return std::nullopt;
  Members members(std::move(object));
  StepDown out;
  out.token.value = members.integer<std::uint64_t>("token", UINT64_MAX);
  out.by = members.text("by", max_candidate_bytes);
  out.why = members.text("why", max_why_bytes);
  return members.all_right() ? std::optional(std::move(out)) : std::nullopt;
}

/// `where` it stands, for messages. Fault::corrupt says that the record is none of ours. It sets no clock.
inline Result<Read> read_of(Json object, const std::string& where) {
  if (!object.is_object()) return no_record(where);
  Read out{.absence_certain = true};
  Members members(std::move(object));
  auto& found = out.record.emplace();
  found.token.value = members.integer<std::uint64_t>("token", UINT64_MAX);
  found.beat = members.integer<std::uint64_t>("beat", UINT64_MAX);
  if (!members.all_right()) return no_record(where);
  if (const auto format = members.integer<int>("format", std::numeric_limits<int>::max()); format > format_version)
    return other_format(where, std::to_string(format), format_version);
  found.who = members.who();
  found.released = members.flag("released");
  found.term = std::chrono::milliseconds(
      members.integer<std::int64_t>("term_ms", std::chrono::milliseconds(longest_stored_term).count()));
  found.asked = Clock::Duration(members.integer<std::int64_t>("asked_ns", INT64_MAX));
  found.written_ms = members.integer<std::int64_t>("written_ms", INT64_MAX);
  return members.all_right() && members.empty() ? out : unreadable(std::move(out));
}

}  // namespace tenure::web
