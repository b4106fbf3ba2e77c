// SPDX-License-Identifier: Apache-2.0
// Goal: trouble that lasts fills no log, and nothing new is kept back. Method: errors at moments of a clock that is
// only a number.
#include <tenure/kit/repeats.hpp>

#include <gtest/gtest.h>

namespace tenure {
namespace {

using namespace std::chrono_literals;

constexpr Clock::Time begun{1h};

std::string told(Repeats& repeats, Clock::Duration at, std::string message, Fault fault = Fault::timed_out) {
  const auto error = repeats.told(begun + at, {fault, std::move(message)});
  return error ? error->message : "";
}

TEST(Repeats, TheSameWordsWithOtherNumbersAreLoggedOnceAMinute) {
  Repeats repeats;
  EXPECT_EQ(told(repeats, 0s, "still connecting after 200 ms"), "still connecting after 200 ms");
  EXPECT_EQ(told(repeats, 10s, "still connecting after 500 ms"), "");
  EXPECT_EQ(told(repeats, 60s - 1ns, "still connecting after 1000 ms"), "");
  EXPECT_EQ(told(repeats, 60s, "still connecting after 9 ms"),
            "still connecting after 9 ms (2 more since the last report)");
  EXPECT_EQ(told(repeats, 61s, "still connecting after 9 ms"), "");
  EXPECT_EQ(told(repeats, 200s, "still connecting after 9 ms"),
            "still connecting after 9 ms (1 more since the last report)");
  EXPECT_EQ(told(repeats, 300s, "still connecting after 9 ms"), "still connecting after 9 ms");
}

TEST(Repeats, OtherWordsAndFaultsAreLoggedAtOnceButNotInTurns) {
  Repeats repeats;
  EXPECT_EQ(told(repeats, 0s, "a"), "a");
  EXPECT_EQ(told(repeats, 1s, "b"), "b");
  EXPECT_EQ(told(repeats, 2s, "a", Fault::forbidden), "a");
  for (auto at = 3s; at < 60s; ++at) EXPECT_EQ(told(repeats, at, at.count() % 2 ? "a" : "b"), "");
}

TEST(Repeats, AServerThatWordsItAnewEachTimeFillsNoLogEither) {
  Repeats repeats;
  int lines = 0;
  for (auto at = 0s; at < 60s; ++at)
    lines += told(repeats, at, std::string(static_cast<std::size_t>(at.count()) + 1, 'x')).empty() ? 0 : 1;
  EXPECT_EQ(lines, 8);
  EXPECT_EQ(told(repeats, 59s, "the store lost data", Fault::forbidden), "the store lost data") << "another fault";
  EXPECT_EQ(told(repeats, 70s, "y"), "y") << "a minute later there is room";
}

}  // namespace
}  // namespace tenure
