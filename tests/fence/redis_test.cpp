// SPDX-License-Identifier: Apache-2.0
// Goal: in Redis a former leader writes nothing. Method: the script of fence.hpp in a real server, and the tokens of
// two leaders.
#include <tenure/fence.hpp>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "two_leaders.hpp"

namespace tenure::fence {
namespace {

class RedisFence : public testing::Test {
 protected:
  void SetUp() override {
    const auto* port = std::getenv("TENURE_REDIS_PORT");
    const auto* password = std::getenv("TENURE_REDIS_PASSWORD");
    if (port == nullptr || password == nullptr)
      GTEST_SKIP() << "needs a real server: set TENURE_REDIS_PORT and TENURE_REDIS_PASSWORD";
    context_.reset(redisConnect("127.0.0.1", std::stoi(port)));
    ASSERT_TRUE(context_ && context_->err == 0);
    ask({"AUTH", password});
  }
  ~RedisFence() override {
    if (context_) ask({"DEL", key_});
  }

  std::string ask(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) texts.push_back(word.data()), sizes.push_back(word.size());
    const std::unique_ptr<redisReply, void (*)(void*)> reply(
        static_cast<redisReply*>(
            redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())),
        freeReplyObject);
    if (!reply) return "no reply";
    return reply->type == REDIS_REPLY_INTEGER ? std::to_string(reply->integer) : std::string(reply->str, reply->len);
  }
  /// Writes as a leader does. False if the script refused the token.
  bool write(Token token, const std::string& value) {
    const auto reply =
        ask({"EVAL", std::string(redis_hset), "1", key_, std::to_string(token.value), "sum", value, "by", "me"});
    EXPECT_TRUE(reply == "0" || reply == "1") << reply;
    return reply == "1";
  }
  std::string sum() { return ask({"HGET", key_, "sum"}); }

 private:
  std::unique_ptr<redisContext, void (*)(redisContext*)> context_{nullptr, redisFree};
  const std::string key_ = "fence-test-" + std::to_string(::getpid());
};

TEST_F(RedisFence, AFormerLeaderWritesNothing) {
  const auto [stale, later] = test::two_leaders();
  EXPECT_TRUE(write(stale, "10"));
  EXPECT_TRUE(write(stale, "11"));
  EXPECT_TRUE(write(later, "20"));
  EXPECT_FALSE(write(stale, "12"));
  EXPECT_EQ(sum(), "20");
}

TEST_F(RedisFence, TokensAreComparedToTheLastDigit) {
  EXPECT_TRUE(write({9}, "9"));
  EXPECT_TRUE(write({10}, "10")) << "as numbers, not as words";
  EXPECT_TRUE(write({9'007'199'254'740'993}, "greater than a double counts"));
  EXPECT_FALSE(write({9'007'199'254'740'992}, "one less"));
  EXPECT_FALSE(write({11}, "11"));
}

}  // namespace
}  // namespace tenure::fence
