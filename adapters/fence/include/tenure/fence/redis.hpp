// SPDX-License-Identifier: Apache-2.0
// The strict fence of Redis: scripts that run a command of yours only for the leader, through whatever client you use.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/token.hpp>

namespace tenure::fence {

/// For EVAL. Keys: the election's record, then those of your command. Arguments: the field of the record that has the
/// token, the token, then your command. It runs the command and answers what that answers. If a later leader has
/// claimed, or the record is lost, it answers the error FENCED and does nothing. Lua makes an integer above 2^53 in an
/// answer inexact, and takes some 8 000 words at most.
inline constexpr std::string_view redis_if_leads = R"lua(
local held = redis.call('HGET', KEYS[1], ARGV[1])
if string.match(held or '', '^%d+') ~= ARGV[2] then return redis.error_reply('FENCED a later leader has claimed') end
return redis.pcall(unpack(ARGV, 3))
)lua";

/// For EVAL. Keys: one that is the epoch of all that your program writes, then those of your command. Arguments: the
/// token, then your command; or no command, to begin an epoch. It answers as the other one does, and OK without a
/// command; it answers FENCED once a greater token was seen. So a leader begins its epoch before it reads or writes
/// anything: from there on nothing of a former leader takes effect. The store of the election may be any.
///
/// It compares tokens as text, because a Lua number holds only 53 bits.
inline constexpr std::string_view redis_epoch = R"lua(
local token, seen = ARGV[1], redis.call('GET', KEYS[1]) or '0'
if #token < #seen or (#token == #seen and token < seen) then
  return redis.error_reply('FENCED a later leader has begun its epoch')
end
if token ~= seen then redis.call('SET', KEYS[1], token) end
if #ARGV == 1 then return redis.status_reply('OK') end
return redis.pcall(unpack(ARGV, 2))
)lua";

using RedisWords = std::vector<std::string>;

/// Where the token stands.
struct RedisRecord {
  std::string key{}, field{};
};

/// `prefix`: what redis::Options::prefix says. In a cluster the keys of your command have the tag "{ELECTION}", so that
/// they stand beside the record: "sums{jobs}". REQUIRES: the name does not begin with '}'.
inline RedisRecord redis_record(std::string_view election, std::string_view prefix = "tenure:") {
  return {std::string(prefix).append("{").append(election).append("}"), "token"};
}

/// The same of an election of a group, with the tag "{GROUP}". REQUIRES: the group's name does not begin with '}'.
inline RedisRecord redis_lead(std::string_view group, std::string_view election, std::string_view prefix = "tenure:") {
  return {std::string(prefix).append("{").append(group).append("}:e"), std::string(election)};
}

/// The words to send: EVAL with redis_if_leads. `keys`: all that `command` names.
inline RedisWords redis_guarded(const RedisRecord& record, Token token, const RedisWords& keys,
                                const RedisWords& command) {
  RedisWords out{"EVAL", std::string(redis_if_leads), std::to_string(keys.size() + 1), record.key};
  out.insert(out.end(), keys.begin(), keys.end());
  for (const auto& word : {record.field, std::to_string(token.value)}) out.push_back(word);
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

/// The words to send: EVAL with redis_epoch. Without a command it begins the epoch.
inline RedisWords redis_in_epoch(const std::string& epoch, Token token, const RedisWords& keys = {},
                                 const RedisWords& command = {}) {
  RedisWords out{"EVAL", std::string(redis_epoch), std::to_string(keys.size() + 1), epoch};
  out.insert(out.end(), keys.begin(), keys.end());
  out.push_back(std::to_string(token.value));
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

}  // namespace tenure::fence
