// SPDX-License-Identifier: Apache-2.0
// The text of the scripts of one election, and how a record is read and written.
#include "record.hpp"

#include <chrono>
#include <map>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/log.hpp>

namespace tenure::redis {

using std::chrono::ceil;
using std::chrono::milliseconds;

// Tokens and beats are compared as text: Lua's numbers lose bits beyond 2^53. A test asks the server for each sha1.

const Script read_script{R"(return {redis.call('TIME'), redis.call('HGETALL', KEYS[1])})",
                         "2cdb940b1abbfe65fc245643c66bb6abad88f684"};

// A server out of memory refuses no script that has begun to write. This one begins by removing, so only the first
// claim of an election needs memory.
// A user who may not PUBLISH still elects; waiting candidates then look when the lease ends.
const Script swap_script{R"(local key, expected, token, beat, released = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local stands = redis.call('HMGET', key, 'token', 'beat', 'released')
local apply = false
if expected == '' then
  apply = redis.call('EXISTS', key) == 0
elseif stands[1] == expected and (ARGV[8] == '0' or stands[3] == '1') then
  for i = 9, #ARGV do apply = apply or stands[2] == ARGV[i] end
end
if apply then
  local now = redis.call('TIME')
  if stands[1] == token then redis.call('HDEL', key, 'written_ms') elseif stands[1] then redis.call('DEL', key) end
  redis.call('HSET', key, 'format', '1', 'token', token, 'beat', beat, 'released', released, 'term_ms', ARGV[5],
    'asked_ns', ARGV[6], 'who', ARGV[7], 'written_ms', now[1] .. string.format('%03d', math.floor(now[2] / 1000)))
  if stands[1] ~= token or released == '1' then redis.pcall('PUBLISH', key, token .. ' ' .. beat .. (released == '1' and ' released' or '')) end
end
return {apply and 1 or 0, redis.call('TIME'), redis.call('HGETALL', key)})",
                         "5243a80147553d74711d058b7fe98973a3876884"};

const Script step_down_script{R"(if redis.call('HMGET', KEYS[1], 'token')[1] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'step_down_token', ARGV[1], 'step_down_by', ARGV[2], 'step_down_why', ARGV[3])
end
return 1)",
                              "44a1368e75e543d60df85ed0855fec84875cc947"};

// A cluster's node would show its own part as if it were all.
const Script list_script{R"(local told = redis.pcall('INFO', 'cluster')
if type(told) == 'string' and string.find(told, 'cluster_enabled:1', 1, true) then
  return redis.error_reply('PARTIAL this node has a part of the elections')
end
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local out = {page[1], redis.call('TIME')}
for _, key in ipairs(page[2]) do
  if redis.call('TYPE', key).ok == 'hash' then
    out[#out + 1] = key
    out[#out + 1] = redis.call('HGETALL', key)
  end
end
return out)",
                         "b9de46510cc9ba9090742bba9aab146f8cb471bf"};

namespace {

using Fields = std::map<std::string_view, std::string_view>;

/// Reads fields by name, each once, and knows whether all were there and right.
class FieldReader {
 public:
  explicit FieldReader(Fields fields) : fields_(std::move(fields)) {}

  std::string_view text(std::string_view name, std::size_t most) {
    const auto field = fields_.extract(name);
    right_ = right_ && field && field.mapped().size() <= most;
    return field ? field.mapped() : std::string_view();
  }

  template <class T>
  T integer(std::string_view name, T least, T most) {
    const auto value = exact<T>(text(name, 20));
    const bool good = value && *value >= least && *value <= most;
    right_ = right_ && good;
    return good ? *value : T{};
  }

  bool has(std::string_view name) const { return fields_.contains(name); }
  bool all_right() const { return right_; }
  bool empty() const { return fields_.empty(); }

 private:
  Fields fields_;
  bool right_{true};
};

std::optional<Fields> fields_of(const Reply& hash) {
  if (hash.kind != Reply::Kind::list || hash.list.size() % 2 != 0) return std::nullopt;
  Fields out;
  for (std::size_t i = 0; i < hash.list.size(); i += 2) {
    const auto &name = hash.list[i], &value = hash.list[i + 1];
    if (name.kind != Reply::Kind::text || value.kind != Reply::Kind::text) return std::nullopt;
    out[name.text] = value.text;
  }
  return out;
}

/// TIME's seconds and microseconds.
std::optional<std::int64_t> milliseconds_of(const Reply& time) {
  if (time.kind != Reply::Kind::list || time.list.size() != 2) return std::nullopt;
  const auto seconds = exact<std::int64_t>(time.list[0].text), micros = exact<std::int64_t>(time.list[1].text);
  if (!seconds || !micros || *seconds < 0 || *seconds > most_unix_ms / 1000 || *micros < 0 || *micros >= 1'000'000)
    return std::nullopt;
  return *seconds * 1000 + *micros / 1000;
}

void take_step_down(FieldReader& reader, Read& out) {
  if (!reader.has("step_down_token")) return;
  auto& step_down = out.step_down.emplace();
  step_down.token.value = reader.integer<std::uint64_t>("step_down_token", 0, UINT64_MAX);
  step_down.by = reader.text("step_down_by", max_candidate_bytes);
  step_down.why = reader.text("step_down_why", 256 + 3);
}

Result<Read> read_of(const Reply& time, const Reply& hash, const std::string& key) {
  const auto now_ms = milliseconds_of(time);
  const auto fields = fields_of(hash);
  if (!now_ms || !fields) return no_answer(key);
  Read out{.now_ms = *now_ms};
  if (fields->empty()) return out;

  FieldReader reader(*fields);
  auto& record = out.record.emplace();
  record.token.value = reader.integer<std::uint64_t>("token", 0, UINT64_MAX);
  record.beat = reader.integer<std::uint64_t>("beat", 0, UINT64_MAX);
  if (!reader.all_right()) return no_record(printable(key));
  if (const auto format = reader.text("format", 20); !format.empty() && format != std::to_string(format_version))
    return other_format(printable(key), format, format_version);
  record.released = reader.integer<int>("released", 0, 1) != 0;
  record.term = milliseconds(reader.integer<std::int64_t>("term_ms", 0, milliseconds(longest_stored_term).count()));
  record.asked = Clock::Duration(reader.integer<std::int64_t>("asked_ns", 0, INT64_MAX));
  record.written_ms = reader.integer<std::int64_t>("written_ms", 0, INT64_MAX);
  record.who = reader.text("who", max_who_bytes);
  take_step_down(reader, out);
  return reader.all_right() && reader.empty() ? out : unreadable(std::move(out));
}

}  // namespace

std::vector<std::string> swap_arguments(const std::optional<Expected>& expected, const Record& next) {
  std::vector<std::string> out{expected ? std::to_string(expected->token.value) : std::string(),
                               std::to_string(next.token.value),
                               std::to_string(next.beat),
                               next.released ? "1" : "0",
                               std::to_string(ceil<milliseconds>(next.term).count()),
                               std::to_string(next.asked.count()),
                               next.who,
                               expected && expected->released ? "1" : "0"};
  if (expected)
    for (const auto beat : expected->beats) out.push_back(std::to_string(beat));
  return out;
}

std::vector<std::string> step_down_arguments(const StepDown& request) {
  return {std::to_string(request.token.value), printable(request.by.substr(0, max_candidate_bytes)),
          printable(request.why)};
}

Result<Read> read_of(const Reply& reply, const std::string& key) {
  if (reply.kind != Reply::Kind::list || reply.list.size() != 2) return no_answer(key);
  return read_of(reply.list[0], reply.list[1], key);
}

std::vector<std::string> list_arguments(const std::string& prefix, const std::string& cursor) {
  std::string pattern;
  for (const char c : prefix) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return {cursor, pattern + "{*}", "1000"};
}

Result<Found> found_of(const Reply& reply, const std::string& prefix) {
  const auto& all = reply.list;
  if (reply.kind != Reply::Kind::list || all.size() < 2 || all.size() % 2 != 0 || all[0].kind != Reply::Kind::text)
    return no_answer("SCAN");
  Found out{all[0].text, {}};
  for (std::size_t i = 2; i < all.size(); i += 2) {
    const auto& key = all[i].text;
    if (key.size() < prefix.size() + 3 || !key.starts_with(prefix + '{') || !key.ends_with('}')) continue;
    out.elections.emplace_back(key.substr(prefix.size() + 1, key.size() - prefix.size() - 2),
                               read_of(all[1], all[i + 1], key));
  }
  return out;
}

Result<Swap> swap_of(const Reply& reply, const std::string& key) {
  if (reply.kind != Reply::Kind::list || reply.list.size() != 3 || reply.list[0].kind != Reply::Kind::integer)
    return no_answer(key);
  auto found = read_of(reply.list[1], reply.list[2], key);
  if (!found) return std::move(found).error();
  return Swap{reply.list[0].integer == 1, *std::move(found)};
}

std::optional<Error> step_down_kept(const Reply& reply, const std::string& key) {
  if (reply.kind != Reply::Kind::integer || reply.integer != 1) return no_answer(key);
  return std::nullopt;
}

std::optional<Notice> notice_of(std::string_view message) {
  constexpr std::string_view flag = " released";
  const bool released = message.ends_with(flag);
  if (released) message.remove_suffix(flag.size());
  const auto blank = std::min(message.find(' '), message.size());
  const auto token = exact<std::uint64_t>(message.substr(0, blank));
  const auto beat = exact<std::uint64_t>(message.substr(std::min(blank + 1, message.size())));
  if (!token || !beat) return std::nullopt;
  return Notice{{{*token}, *beat}, released};
}

}  // namespace tenure::redis
