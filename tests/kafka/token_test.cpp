// SPDX-License-Identifier: Apache-2.0
// Goal: handles of librdkafka get their tokens from Options::oauth_token, again before a token's time is over, and
// never after the end of the backend. An error tells why there is none, and no token. Method: handles whose broker does
// not exist, because a token comes before a connection.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include <tenure/kafka.hpp>

#include "client.hpp"
#include "eventually.hpp"
#include "messages.hpp"
#include "refusal.hpp"
#include "settings.hpp"

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::eventually;
using tenure::test::mentions;

Options options(OauthTokenSource source) {
  Options o;
  o.brokers = "127.0.0.1:1";
  o.group = "jobs";
  o.topic = "jobs.neli";
  o.properties = {{"security.protocol", "sasl_plaintext"}, {"sasl.mechanism", "OAUTHBEARER"}};
  o.oauth_token = std::move(source);
  o.log = no_log;
  return o;
}

/// What a handle says, once it says why it has no token.
std::string trouble(const Options& o) {
  const auto client = make_observer(o, o.group, std::make_shared<ClosableLog>(o));
  std::string told;
  eventually([&] {
    bool missing = false;
    const auto partitions = client->partitions(100ms, missing);
    told = partitions ? "" : partitions.error().message;
    return mentions(told, "token");
  });
  return told;
}

TEST(KafkaToken, IsAskedForAgainBeforeItsTimeIsOver) {
  std::atomic<int> asked{0};
  const auto o = options([&]() -> Result<OauthToken> { return ++asked, OauthToken{"abc", 1s, "me", {}}; });
  const auto log = std::make_shared<ClosableLog>(o);
  const auto client = make_observer(o, o.group, log);
  EXPECT_TRUE(eventually([&] { return asked >= 3; }));
  log->close();
  const int then = asked;
  EXPECT_FALSE(log->token()) << "its function may be gone";
  EXPECT_EQ(asked, then);
}

TEST(KafkaToken, ARefusalSaysWhyThereIsNone) {
  EXPECT_TRUE(mentions(trouble(options([]() -> Result<OauthToken> {
                         return Error{Fault::forbidden, "no role"};
                       })),
                       "no role"));
  EXPECT_TRUE(mentions(trouble(options([]() -> Result<OauthToken> { throw std::runtime_error("lost"); })), "lost"));
  const auto refused = trouble(options([]() -> Result<OauthToken> { return OauthToken{canary, -1s, "me", {}}; }));
  EXPECT_TRUE(mentions(refused, "the token is refused: ")) << refused;
  EXPECT_FALSE(mentions(refused, canary)) << refused;
}

TEST(KafkaToken, ARefusalWithoutATextIsOneToo) {
  EXPECT_TRUE(mentions(trouble(options([]() -> Result<OauthToken> {
                         return Error{Fault::forbidden, ""};
                       })),
                       "there is no token"));
  EXPECT_TRUE(mentions(trouble(options([]() -> Result<OauthToken> { throw 1; })), "no std::exception"));
}

TEST(KafkaToken, MayLastForEver) {
  const auto o = options([]() -> Result<OauthToken> {
    return OauthToken{"abc", std::chrono::milliseconds::max(), "me", {}};
  });
  const auto client = make_observer(o, o.group, std::make_shared<ClosableLog>(o));
  std::string told;
  EXPECT_TRUE(eventually([&] {
    bool missing = false;
    const auto partitions = client->partitions(100ms, missing);
    told = partitions ? "" : partitions.error().message;
    return mentions(told, "Connection refused") || mentions(told, "token");
  }));
  EXPECT_FALSE(mentions(told, "the token is refused")) << told;
}

std::string refusal(const Options& o) {
  return tenure::test::refusal_of([&] { completed(o); });
}

TEST(KafkaToken, WithoutASourceOfTokensNothingIsOpened) {
  const auto source = []() -> Result<OauthToken> { return OauthToken{}; };
  EXPECT_EQ(refusal(options(source)), "accepted");
  EXPECT_TRUE(mentions(refusal(options({})), "nothing gives a token: give Options::oauth_token"));
  auto o = options({});
  o.properties["sasl.oauthbearer.method"] = "oidc";
  const auto oidc = refusal(o);
  EXPECT_TRUE(oidc == "accepted" || mentions(oidc, "not supported in this build")) << oidc;  // as in Debian 12
  o.oauth_token = source;
  EXPECT_TRUE(mentions(refusal(o), "give one of them"));
  o = options({});
  o.properties["enable.sasl.oauthbearer.unsecure.jwt"] = "true";
  EXPECT_TRUE(mentions(refusal(o), "for development alone"));
  o = options(source);
  o.properties["sasl.mechanism"] = "PLAIN";
  EXPECT_TRUE(mentions(refusal(o), "properties need sasl.mechanism=OAUTHBEARER"));
}

}  // namespace
}  // namespace tenure::kafka
