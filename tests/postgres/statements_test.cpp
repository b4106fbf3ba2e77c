// SPDX-License-Identifier: Apache-2.0
// Goal: a notice that is none of ours names no version. Method: no server.
#include "statements.hpp"

#include <gtest/gtest.h>

namespace tenure::postgres {
namespace {

TEST(PostgresNotice, OfAReleaseNamesTheVersionThatItLeft) {
  EXPECT_EQ(released_by("7 11"), (Version{{7}, 11}));
  EXPECT_EQ(released_by("7 -1"), (Version{{7}, 0xffff'ffff'ffff'ffffu})) << "a bigint";
}

TEST(PostgresNotice, OfAnythingElseNamesNothing) {
  for (const auto* text :
       {"", " ", "7", "7 ", " 7", "7 11 ", "7  11", "7 11 12", "7 +1", "a b", "7 9223372036854775808", "7 11\n"})
    EXPECT_FALSE(released_by(text)) << text;
}

}  // namespace
}  // namespace tenure::postgres
