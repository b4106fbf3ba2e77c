// SPDX-License-Identifier: Apache-2.0
// Writes records as JSON, and reads them with suspicion.
#include "record.hpp"

#include <chrono>
#include <limits>

#include <tenure/candidate.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/kit/who.hpp>

#include "gateway.hpp"

namespace tenure::etcd {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;

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
std::optional<StepDown> step_down_of(const std::string& text) {
  auto object = parsed(text);
  if (!object.is_object()) return std::nullopt;
  Members members(std::move(object));
  StepDown out;
  out.token.value = members.integer<std::uint64_t>("token", UINT64_MAX);
  out.by = members.text("by", max_candidate_bytes);
  out.why = members.text("why", max_why_bytes);
  return members.all_right() ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

/// The token comes first: the strict fence compares the beginning of the text (fence/etcd.hpp).
std::string text_of(const Record& record) {
  return nlohmann::ordered_json{{"token", record.token.value},
                                {"format", format_version},
                                {"beat", record.beat},
                                {"who", utf8(record.who)},
                                {"released", record.released},
                                {"term_ms", ceil<milliseconds>(record.term).count()},
                                {"asked_ns", record.asked.count()},
                                {"written_ms", record.written_ms}}
      .dump();
}

std::string text_of(const StepDown& request) {
  return Json{{"token", request.token.value},
              {"by", percent_encoded(printable(request.by.substr(0, max_candidate_bytes)))},
              {"why", percent_encoded(printable(request.why.substr(0, max_why_bytes)))}}
      .dump();
}

Result<Read> read_of(const std::optional<std::string>& record, const std::optional<std::string>& step_down,
                     const std::string& key) {
  Read out{.absence_certain = true};
  if (step_down) out.step_down = step_down_of(*step_down);
  if (!record) return out;
  auto object = parsed(*record);
  const auto where = "the value of etcd's key " + printable(key);
  if (!object.is_object()) return no_record(where);
  Members members(std::move(object));
  auto& found = out.record.emplace();
  found.token.value = members.integer<std::uint64_t>("token", UINT64_MAX);
  found.beat = members.integer<std::uint64_t>("beat", UINT64_MAX);
  if (!members.all_right()) return no_record(where);
  if (const auto format = members.integer<int>("format", std::numeric_limits<int>::max()); format > format_version)
    return other_format(where, std::to_string(format), format_version);
  found.who = members.who();
  found.released = members.flag("released");
  found.term = milliseconds(members.integer<std::int64_t>("term_ms", milliseconds(longest_stored_term).count()));
  found.asked = Clock::Duration(members.integer<std::int64_t>("asked_ns", INT64_MAX));
  found.written_ms = members.integer<std::int64_t>("written_ms", INT64_MAX);
  return members.all_right() && members.empty() ? out : unreadable(std::move(out));
}

}  // namespace tenure::etcd
