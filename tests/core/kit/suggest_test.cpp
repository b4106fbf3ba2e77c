// SPDX-License-Identifier: Apache-2.0
// Goal: who mistypes a name is shown the right one, and nobody is shown a far-fetched one.
#include <gtest/gtest.h>

#include <string>

#include <tenure/kit/suggest.hpp>

namespace tenure {
namespace {

constexpr std::string_view names[] = {"store", "election", "candidate", "timing", "term", "renew", "retry"};

TEST(Nearest, AMistypedNameIsKnown) {
  EXPECT_EQ(nearest("elektion", names), "election");
  EXPECT_EQ(nearest("ELECTION", names), "election");
  EXPECT_EQ(nearest("candidates", names), "candidate");
  EXPECT_EQ(nearest("temr", names), "term") << "a swap of neighbours is one edit";
  EXPECT_EQ(nearest("tem", names), "term");
  EXPECT_EQ(nearest("strore", names), "store");
  EXPECT_EQ(nearest("term", names), "term");
}

TEST(Nearest, TheLeastEditsWin) {
  EXPECT_EQ(nearest("retr", names), "retry");
  EXPECT_EQ(nearest("rene", names), "renew");
  constexpr std::string_view alike[] = {"stores", "store"};
  EXPECT_EQ(nearest("store", alike), "store") << "whichever comes first";
}

TEST(Nearest, AMessageSuggestsItAndListsAll) {
  EXPECT_EQ(did_you_mean("elektion", names), ", did you mean \"election\"?");
  EXPECT_EQ(did_you_mean("x", names), "");
  EXPECT_EQ(listed(names), "store, election, candidate, timing, term, renew, retry");
  EXPECT_EQ(listed({}), "");
}

TEST(Nearest, WhatIsFarIsNotSuggested) {
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", names), "");
  EXPECT_EQ(nearest("password", names), "");
  EXPECT_EQ(nearest("abcdefghi", names), "");
  EXPECT_EQ(nearest(std::string(10'000'000, 'r'), names), "") << "and costs nothing";
  EXPECT_EQ(nearest("term", {}), "");
}

}  // namespace
}  // namespace tenure
