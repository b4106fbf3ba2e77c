// SPDX-License-Identifier: Apache-2.0
// Goal: the tool's parts that need no process are right: durations, and what is shown of an address.
// Method: calls them.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "durations.hpp"
#include "messages.hpp"
#include "secrets.hpp"

namespace {

using namespace tenure;
using namespace std::chrono_literals;

TEST(Durations, AreAWholeNumberAndAUnit) {
  EXPECT_EQ(tool::duration("500ms"), 500ms);
  EXPECT_EQ(tool::duration("10s"), 10s);
  EXPECT_EQ(tool::duration("5m"), 5min);
  EXPECT_EQ(tool::duration("1h"), 1h);
  for (const char* wrong : {"", "s", "5", "0s", "-1s", "1.5s", "1 s", "1d", "99999999999999h", "4294967295h"})
    EXPECT_THROW(tool::duration(wrong), std::invalid_argument) << wrong;
}

TEST(Durations, AreShownInSeconds) {
  EXPECT_EQ(tool::seconds(7150ms), "7.15 s");
  EXPECT_EQ(tool::seconds(2s), "2 s");
  EXPECT_EQ(tool::seconds(5ms), "0.005 s");
  EXPECT_EQ(tool::seconds(-500ms), "-0.5 s");
}

TEST(Secrets, AreNotShown) {
  const auto& secret = test::canary;
  for (const std::string& url : std::vector<std::string>{
           "redis://u:" + secret + "@h/0",
           "redis://u:pa/" + secret + "?x@h/0",
           "postgres://u@h/db?password=" + secret,
           "postgres://u@h/db?sslmode=require&password=" + secret + "&x=y",
           "redis://h/0?name=a@b&password=" + secret,
           "kafka://h/topic?ssl.key=" + secret,
           "redis:" + secret + "@h",
       })
    EXPECT_FALSE(test::mentions(tool::shown(url), secret)) << tool::shown(url);
}

TEST(Secrets, LeaveTheRestOfAnAddress) {
  EXPECT_EQ(tool::shown("file:///run/elections"), "file:///run/elections");
  EXPECT_EQ(tool::shown("redis://u:p@h:1/0"), "redis://***@h:1/0");
  EXPECT_EQ(tool::shown("kafka://b1:9092,b2/topic?group=g&x=y"), "kafka://b1:9092,b2/topic?group=g&x=***");
}

TEST(Secrets, AreOverwrittenInACommandLine) {
  std::string words[] = {
      "tenure", "--store",      "redis://u:" + test::canary + "@h", "--store=redis://u:" + test::canary + "@h",
      "--",     "redis://u:p@h"};
  char* argv[6];
  for (int i = 0; i < 6; ++i) argv[i] = words[i].data();
  tool::hide_from_ps(6, argv);
  EXPECT_FALSE(test::mentions(words[2], test::canary));
  EXPECT_FALSE(test::mentions(words[3], test::canary));
  EXPECT_EQ(words[5], "redis://u:p@h") << "the child's own";
}

}  // namespace
