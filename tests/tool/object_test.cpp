// SPDX-License-Identifier: Apache-2.0
// Goal: the tool elects, tells, asks and examines over a bucket as over other stores. Method: a server of the test's
// own.
#include <gtest/gtest.h>

#include <csignal>

#include "eventually.hpp"
#include "messages.hpp"
#include "process.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

/// A term that is short for a bucket, and long for a busy machine.
std::vector<std::string> over(const object::test::Server& server, std::vector<std::string> words) {
  words.insert(words.begin() + 1, {"--store", server.url(), "-e", "reports", "--term", "6s"});
  return tool(std::move(words));
}

TEST(ToolOnObject, RunsShowsAndHandsOver) {
  TENURE_NEEDS_OBJECT("moto");
  const object::test::Server server("moto");
  const std::vector<std::string> work{"--", "sh", "-c", "echo led; while :; do sleep 0.01; done"};
  const auto candidate = [&](const std::string& id) {
    std::vector<std::string> words{"run", "--id", id};
    words.insert(words.end(), work.begin(), work.end());
    return over(server, words);
  };
  Process ann(candidate("ann"));
  ASSERT_TRUE(eventually([&] { return ann.out() == "led\n"; })) << ann.err();
  Process bob(candidate("bob"));
  Process status(over(server, {"status"}));
  EXPECT_EQ(status.ended(), 0) << status.err();
  EXPECT_TRUE(mentions(status.out(), "ann leads")) << status.out();
  Process asks(over(server, {"step-down", "--why", "upgrade", "--wait", "20s"}));
  EXPECT_EQ(asks.ended(), 0) << asks.out() << asks.err();
  EXPECT_TRUE(mentions(asks.out(), "bob")) << asks.out();
  EXPECT_TRUE(eventually([&] { return bob.out() == "led\n"; })) << bob.err();
  bob.signal(SIGTERM);
  EXPECT_EQ(bob.ended(), 128 + SIGTERM) << bob.err();
}

TEST(ToolOnObject, TheDoctorReportsTheBucket) {
  TENURE_NEEDS_OBJECT("moto");
  const object::test::Server server("moto");
  Process good(tool({"doctor", "--store", server.url()}));
  EXPECT_GE(good.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const auto* line : {"ok     the bucket tenure answers", "ok     the server honours conditional writes",
                           "ok     no lifecycle rule deletes objects"})
    EXPECT_TRUE(mentions(good.out(), line)) << good.out() << good.err();
  Process bad(tool({"doctor", "--store",
                    "s3://u:" + canary + "@no-such-bucket?" + server.url().substr(server.url().find('?') + 1)}));
  EXPECT_EQ(bad.ended(), 78) << bad.out() << bad.err();
  EXPECT_TRUE(mentions(bad.err(), "NoSuchBucket")) << bad.err();
  EXPECT_FALSE(mentions(bad.out() + bad.err(), canary));
}

}  // namespace
}  // namespace tenure::test
