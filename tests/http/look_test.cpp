// SPDX-License-Identifier: Apache-2.0
// Goal: the documents say what the manager said, no change is lost between two looks, and who asks is answered.
// Method: looks and requests made by hand.
#include "look.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <array>
#include <new>

#include "bearer.hpp"
#include "protocol.hpp"

namespace tenure::http {
namespace {

using namespace std::chrono_literals;
using What = Change::What;

std::vector<What> whats(const std::vector<Change>& changes) {
  std::vector<What> out;
  for (const auto& change : changes) out.push_back(change.what);
  return out;
}

Look looked(std::uint64_t elected, std::map<Reason, std::uint64_t> ousted, std::optional<Token> token = {}) {
  Look out;
  out.metrics.elected = elected;
  out.metrics.ousted = std::move(ousted);
  out.metrics.token = token;
  out.metrics.is_leader = token.has_value();
  return out;
}

TEST(Changes, ATenureBeginsAndEnds) {
  const auto begun = changes_between(looked(0, {}), looked(1, {{Reason::lapsed, 0}}, Token{7}));
  ASSERT_EQ(whats(begun), std::vector{What::elected});
  EXPECT_EQ(begun[0].token, Token{7});
  const auto over = changes_between(looked(1, {{Reason::lapsed, 0}}, Token{7}), looked(1, {{Reason::lapsed, 1}}));
  ASSERT_EQ(whats(over), std::vector{What::ousted});
  EXPECT_EQ(over[0].reason, Reason::lapsed);
}

TEST(Changes, WhatHappenedBetweenTwoLooksComesInAPossibleOrder) {
  const auto both = changes_between(looked(0, {}), looked(1, {{Reason::resigned, 1}}));
  ASSERT_EQ(whats(both), (std::vector{What::elected, What::ousted}));
  EXPECT_EQ(both[0].token, std::nullopt) << "nobody knows it any more";
  const auto again = changes_between(looked(1, {}, Token{7}), looked(2, {{Reason::lapsed, 1}}, Token{9}));
  ASSERT_EQ(whats(again), (std::vector{What::ousted, What::elected}));
  EXPECT_EQ(again[1].token, Token{9});
  EXPECT_EQ(changes_between(looked(5, {{Reason::lapsed, 5}}),
                            looked(8, {{Reason::lapsed, 6}, {Reason::resigned, 1}}, Token{9}))
                .size(),
            5u);
}

TEST(Changes, AnotherIncumbentIsAChange) {
  Look none, other, next;
  other.incumbent = Incumbent{.name = "b", .incarnation = "i", .address = "h:1", .token = {3}, .remaining = 1s};
  next.incumbent = Incumbent{.name = "b", .incarnation = "i", .address = "h:1", .token = {4}, .remaining = 1s};
  const auto heard = changes_between(none, other);
  ASSERT_EQ(whats(heard), std::vector{What::incumbent});
  EXPECT_EQ(heard[0].name, "b");
  EXPECT_EQ(whats(changes_between(other, next)), std::vector{What::incumbent});
  EXPECT_EQ(whats(changes_between(other, none)), std::vector{What::vacant});
  EXPECT_TRUE(changes_between(other, other).empty());
}

TEST(Ailment, ALeaderSuffersSoonerFromACallThatHangs) {
  Metrics m;
  EXPECT_EQ(ailment(m, 5s), "");
  m.wedged = 60s;
  EXPECT_EQ(ailment(m, 5s), "") << "a follower holds up nobody";
  m.wedged += 1ms;
  EXPECT_NE(ailment(m, 5s), "");
  EXPECT_EQ(ailment(m, Clock::Duration::max()), "");
  m.wedged = 6s;
  m.is_leader = true;
  EXPECT_NE(ailment(m, 5s), "");
  EXPECT_EQ(ailment(m, 6s), "");
}

TEST(Ailment, AManagerThatDoesNotTurnAndAnOustingThatDoesNotEndAreAilments) {
  Metrics stuck, overran;
  stuck.overdue = 6s;
  overran.overrun = 6s;
  EXPECT_THAT(ailment(stuck, 5s), testing::HasSubstr("6000 ms"));
  EXPECT_THAT(ailment(overran, 5s), testing::HasSubstr("ousting()"));
}

TEST(Protocol, WhereNoAnswerCanBeMadeTheClientIsAnswered500) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const Descriptor client(ends[0], "socketpair");
  const std::string request = "GET /leader HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  const auto fails = [](const Request&) -> Response { throw std::bad_alloc(); };
  Connection connection(ends[1], 1min);
  Protocol(fails, [](std::string_view) { return true; }, {}).serve(connection);
  std::array<char, 4096> got{};
  ASSERT_GT(::recv(client.get(), got.data(), got.size() - 1, 0), 0);
  EXPECT_THAT(got.data(), testing::StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(got.data(), testing::HasSubstr("ask again"));
}

TEST(Bearer, OnlyTheWholeTokenIsRight) {
  EXPECT_TRUE(bears("Bearer abc", "abc"));
  for (const auto* wrong : {"", "Bearer ", "Bearer ab", "Bearer abcd", "Bearer abcabc", "bearer abc", "Basic abc",
                            "abc", "Bearer  abc", "Bearer abd"})
    EXPECT_FALSE(bears(wrong, "abc")) << wrong;
  EXPECT_FALSE(bears("Bearer ", "")) << "none is configured";
}

}  // namespace
}  // namespace tenure::http
