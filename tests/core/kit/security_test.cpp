// SPDX-License-Identifier: Apache-2.0
// Goal: no secret stands in a message, and it is known which hosts are this machine.
#include <tenure/kit/security.hpp>

#include <gtest/gtest.h>

namespace tenure {
namespace {

TEST(Redactor, TakesEachSecretOutWhereverItStands) {
  const Redactor redacted({"s3cret", "hush"});
  EXPECT_EQ(redacted("s3cret and hush, s3crets3cret"), "*** and ***, ******");
  EXPECT_EQ(redacted("nothing to hide"), "nothing to hide");
}

TEST(Redactor, LeavesNoRestOfASecretThatBeginsLikeAnother) {
  EXPECT_EQ(Redactor({"pass", "password"})("password=password"), "***=***");
}

TEST(Redactor, EndsWithEmptySecretsAndWithOnesInTheirOwnReplacement) {
  EXPECT_EQ(Redactor({"", "*"})("a*b"), "a***b");
  EXPECT_EQ(Redactor({})("text"), "text");
}

TEST(Loopback, IsThisMachineAlone) {
  for (const auto* const host : {"", "localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "/run/postgresql", "@name"})
    EXPECT_TRUE(loopback(host)) << host;
  for (const auto* const host :
       {"db.example", "10.0.0.1", "::2", "[fe80::1]", "localhost.example", "127.example", "128.0.0.1"})
    EXPECT_FALSE(loopback(host)) << host;
}

TEST(Loopback, AWarningOfAnotherHostNamesItAndTheRemedy) {
  const auto text = unprotected("broker kafka\n1", "Set security.protocol to ssl.");
  EXPECT_NE(text.find("broker kafka?1"), text.npos) << text;
  EXPECT_TRUE(text.ends_with("Set security.protocol to ssl.")) << text;
}

}  // namespace
}  // namespace tenure
