// SPDX-License-Identifier: Apache-2.0
// Goal: servers are tried in an order that spares those that failed. Method: orders of three names.
#include <gtest/gtest.h>

#include <string>

#include <tenure/kit/try_order.hpp>

namespace tenure {
namespace {

using Order = std::vector<std::string>;
const Order all{"a", "b", "c"};

TEST(TryOrder, AtFirstItIsTheOneThatWasGiven) { EXPECT_EQ(TryOrder<std::string>().of(all), all); }

TEST(TryOrder, BehindTheOneThatWasTriedLast) {
  TryOrder<std::string> order;
  order.tried("b");
  EXPECT_EQ(order.of(all), (Order{"c", "a", "b"}));
  order.tried("unknown");
  EXPECT_EQ(order.of(all), all);
}

TEST(TryOrder, WhatFailedComesLastUntilItServes) {
  TryOrder<std::string> order;
  order.failed("a");
  order.tried("b");
  EXPECT_EQ(order.of(all), (Order{"c", "b", "a"})) << "the one that was tried last served, and a did not";
  order.failed("c");
  order.failed("a");
  EXPECT_EQ(order.of(all), (Order{"b", "c", "a"})) << "the oldest failure first";
  order.failed("b");
  EXPECT_EQ(order.of(all), (Order{"c", "a", "b"}));
  order.served("b");
  EXPECT_EQ(order.of(all), (Order{"b", "c", "a"}));
}

TEST(TryOrder, ItRemembersSomeFailuresOnly) {
  TryOrder<std::string> order;
  order.failed("a");
  for (int i = 0; i < 63; ++i) order.failed(std::to_string(i));
  EXPECT_EQ(order.of(all).back(), "a");
  order.failed("one more");
  EXPECT_EQ(order.of(all), all);
}

}  // namespace
}  // namespace tenure
