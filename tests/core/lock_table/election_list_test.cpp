// SPDX-License-Identifier: Apache-2.0
// Goal: a row of a list says what its record says, and no clock's mistake makes nonsense of it. Method: records by
// hand.
#include <tenure/election_list.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace tenure {
namespace {

using namespace std::chrono_literals;

constexpr Clock::Time now{100s};

Read read_of(std::int64_t written_ms, bool released = false) {
  return {.record = Record{.token = {7},
                           .who = "name=ann",
                           .released = released,
                           .term = 10s,
                           .asked = 96s,
                           .written_ms = written_ms},
          .now_ms = 50'000};
}

TEST(Listed, WhoLeadsAndForHowLong) {
  const auto row = listed("e", read_of(47'000), now);
  EXPECT_EQ(row.election, "e");
  EXPECT_EQ(row.age, 3s);
  ASSERT_TRUE(std::holds_alternative<Incumbent>(row.sight));
  EXPECT_EQ(std::get<Incumbent>(row.sight).name, "ann");
  EXPECT_EQ(std::get<Incumbent>(row.sight).remaining, 7s);
}

TEST(Listed, OneClockForBothCountsMoreThanTheStores) {
  auto read = read_of(0);
  read.same_clock = true;
  EXPECT_EQ(listed("e", read, now).age, 4s);
}

TEST(Listed, ALapsedLeaseHasNothingLeft) {
  const auto row = listed("e", read_of(1'000), now);
  EXPECT_EQ(std::get<Incumbent>(row.sight).remaining, 0s);
  EXPECT_EQ(row.age, 49s);
}

TEST(Listed, NobodyLeadsWhereItWasReleasedOrNeverClaimed) {
  EXPECT_TRUE(std::holds_alternative<Vacant>(listed("e", read_of(47'000, true), now).sight));
  EXPECT_EQ(listed("e", read_of(47'000, true), now).age, 3s);
  EXPECT_TRUE(std::holds_alternative<Vacant>(listed("e", Read{}, now).sight));
}

TEST(Listed, AClockThatWasSteppedMakesNoNonsense) {
  EXPECT_EQ(listed("e", read_of(90'000), now).age, 0s) << "written in the future";
  EXPECT_EQ(std::get<Incumbent>(listed("e", read_of(90'000), now).sight).remaining, 10s);
  auto read = read_of(INT64_MIN);
  read.now_ms = INT64_MAX;
  EXPECT_EQ(listed("e", read, now).age, std::chrono::hours(24 * 365 * 100));
}

TEST(Listed, WhatCannotBeReadIsUnknown) {
  EXPECT_EQ(std::get<Unknown>(listed("e", Error{Fault::forbidden, "m"}, now).sight).error.message, "m");
  EXPECT_EQ(std::get<Unknown>(listed("e", Read{.unreadable = true}, now).sight).error.fault, Fault::corrupt);
  auto nonsense = read_of(47'000);
  nonsense.record->who = "ann";
  EXPECT_EQ(std::get<Unknown>(listed("e", nonsense, now).sight).error.fault, Fault::corrupt);
}

}  // namespace
}  // namespace tenure
