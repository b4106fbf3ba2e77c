// SPDX-License-Identifier: Apache-2.0
// A command of Redis that does nothing once a later leader has claimed. Built if hiredis is there.
#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include <tenure/fence/redis.hpp>
#include <tenure/leadership.hpp>

using namespace std::chrono_literals;

bool add_to_sum(const tenure::Leadership& leadership, redisContext* redis, int more);

bool add_to_sum(const tenure::Leadership& leadership, redisContext* redis, int more) {
  //! [redis]
  const auto token = leadership.guard(100ms);
  if (!token) return false;
  const auto words = tenure::fence::redis_guarded(tenure::fence::redis_record("jobs"), *token, {"sums{jobs}"},
                                                  {"INCRBY", "sums{jobs}", std::to_string(more)});
  std::vector<const char*> texts;
  for (const auto& word : words) texts.push_back(word.c_str());
  auto* const answer = redisCommandArgv(redis, static_cast<int>(texts.size()), texts.data(), nullptr);
  const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(answer), freeReplyObject);
  return reply && reply->type == REDIS_REPLY_INTEGER;  // else an error: FENCED says that a later leader has claimed
  //! [redis]
}
