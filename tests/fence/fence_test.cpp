// SPDX-License-Identifier: Apache-2.0
// Goal: a former leader fails at every fence. Method: two leaders of one election, with their tokens. The first one's
// write comes last.
#include <tenure/fence.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "two_leaders.hpp"

namespace tenure::fence {
namespace {

using test::two_leaders;

TEST(Gate, AFormerLeaderIsRefusedAndTheLaterOneGoesOn) {
  const auto [stale, later] = two_leaders();
  Gate gate;
  EXPECT_TRUE(gate.admit(stale));
  EXPECT_TRUE(gate.admit(stale)) << "it may write as often as it likes while it leads";
  EXPECT_TRUE(gate.admit(later));
  EXPECT_FALSE(gate.admit(stale));
  EXPECT_TRUE(gate.admit(later));
  EXPECT_EQ(gate.seen(), later);
}

TEST(Gate, AGateBeginsWithTheStoredToken) {
  const auto [stale, later] = two_leaders();
  Gate gate(later);
  EXPECT_FALSE(gate.admit(stale));
  EXPECT_TRUE(gate.admit(later));
}

/// Whose write was admitted before.
TEST(Gate, AFormerLeadersWriteEndsBeforeItsSuccessorsBegins) {
  const auto [stale, later] = two_leaders();
  Gate gate;
  std::promise<void> wrote;
  auto written = wrote.get_future();
  std::thread successor;
  EXPECT_TRUE(gate.admit(stale, [&, later = later] {
    successor = std::thread([&gate, &wrote, later] { EXPECT_TRUE(gate.admit(later, [&] { wrote.set_value(); })); });
    EXPECT_EQ(written.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  }));
  successor.join();
  EXPECT_EQ(written.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_FALSE(gate.admit(stale, [] { ADD_FAILURE() << "it writes"; }));
}

TEST(Gate, NoThreadIsAdmittedWithATokenBelowTheGreatest) {
  Gate gate;
  std::vector<std::vector<std::uint64_t>> admitted(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < admitted.size(); ++t)
    threads.emplace_back([&gate, &mine = admitted[t], t] {
      for (std::uint64_t n = 0; n < 20'000; ++n)
        if (const Token token{(n * 7919 + t) % 1'000 + n}; gate.admit(token)) mine.push_back(token.value);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& mine : admitted) EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
}

TEST(Http, AFormerLeadersRequestIsRefused) {
  const auto [stale, later] = two_leaders();
  Gate gate;
  const auto refusal = [&gate](const std::string& value) { return http_refusal(value, gate); };
  EXPECT_EQ(refusal(http_value(stale)), std::nullopt);
  EXPECT_EQ(refusal(http_value(later)), std::nullopt);
  EXPECT_EQ(refusal(http_value(stale)), 412);
  EXPECT_EQ(http_refusal(std::nullopt, gate), 428);
  for (const auto* none : {"", " 5", "5 ", "-1", "+1", "0x10", "1.0", "18446744073709551616", "token"})
    EXPECT_EQ(refusal(none), 400) << none;
  EXPECT_EQ(gate.seen(), later) << "what is refused leaves no trace";
}

TEST(Http, EveryTokenIsReadAsItWasWritten) {
  for (const std::uint64_t value : {0ull, 1ull, 9'223'372'036'854'775'807ull, 18'446'744'073'709'551'615ull})
    EXPECT_EQ(http_token(http_value({value})), Token{value});
}

TEST(Sql, UpdateChecksTheTokenAndWritesInOneStatement) {
  EXPECT_EQ(sql_update("totals", "sum = $2", "id = $3 or id = $4"),
            "update totals set sum = $2, fence = $1 where (id = $3 or id = $4) and fence <= $1");
}

}  // namespace
}  // namespace tenure::fence
