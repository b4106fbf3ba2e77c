// SPDX-License-Identifier: Apache-2.0
// Goal: what the client library and the coordinator say is understood. Method: by value; no broker.
#include "client.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "reaper.hpp"

namespace tenure::kafka {
namespace {

TEST(KafkaClient, ABrokerThatHangsIsNotCalledTooOld) {
  const auto said = explain(RD_KAFKA_RESP_ERR__TRANSPORT,
                            "b:1/1: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 "
                            "(see api.version.request configuration)",
                            Place{"b:1", "jobs", "jobs.neli"}, Redactor({}))
                        .message;
  EXPECT_EQ(said.find("0.10"), std::string::npos) << said;
  EXPECT_NE(said.find("it may hang"), std::string::npos) << said;
}

TEST(KafkaClient, WithoutACoordinatorTheCommonestReasonIsTold) {
  const std::string property = "offsets.topic.replication.factor";
  for (const auto code :
       {RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE})
    EXPECT_NE(reading_failed(code).find(property), std::string::npos);
  EXPECT_EQ(reading_failed(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED).find(property), std::string::npos);
}

class List {
 public:
  ~List() { rd_kafka_topic_partition_list_destroy(list_); }
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  void add(const char* topic, int partition, rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_topic_partition_list_add(list_, topic, partition)->err = error;
  }
  const rd_kafka_topic_partition_list_t* get() const { return list_; }

 private:
  rd_kafka_topic_partition_list_t* const list_ = rd_kafka_topic_partition_list_new(1);
};

TEST(KafkaClient, OnlyNoErrorIsAcceptedAndOnlyAFenceDeposes) {
  for (int code = -200; code < 200; ++code) {
    const auto expected = code == 0                                ? Outcome::accepted
                          : code == 22 || code == 25 || code == 82 ? Outcome::deposed  // generation, member, instance
                          : code == 3                              ? Outcome::unknown_topic
                                                                   : Outcome::failed;
    EXPECT_EQ(outcome_of(static_cast<rd_kafka_resp_err_t>(code)), expected) << code;
  }
}

TEST(KafkaClient, APartitionsErrorIsTheCommits) {
  List good, bad;
  good.add("t", 0);
  bad.add("t", 0);
  bad.add("t", 1, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
  const auto none = RD_KAFKA_RESP_ERR_NO_ERROR;
  EXPECT_EQ(error_of(none, nullptr), none);
  EXPECT_EQ(error_of(none, good.get()), none);
  EXPECT_EQ(error_of(none, bad.get()), RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
  EXPECT_EQ(error_of(RD_KAFKA_RESP_ERR__TRANSPORT, bad.get()), RD_KAFKA_RESP_ERR__TRANSPORT);
}

TEST(KafkaClient, WhoOwnsIsWhoHasPartitionZeroOfTheTopic) {
  EXPECT_FALSE(has_owner_partition(nullptr, "t"));
  List list;
  EXPECT_FALSE(has_owner_partition(list.get(), "t"));
  list.add("t", 1);
  list.add("u", 0);
  EXPECT_FALSE(has_owner_partition(list.get(), "t"));
  list.add("t", 0);
  EXPECT_TRUE(has_owner_partition(list.get(), "t"));
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

TEST(KafkaClient, WhatAMemberWasAssignedIsRead) {
  const auto version = bytes({0, 1});
  const auto topic = [](char name, std::initializer_list<int> partitions) {
    auto out = bytes({0, 1, name, 0, 0, 0, static_cast<int>(partitions.size())});
    for (const int p : partitions) out += bytes({0, 0, 0, p});
    return out;
  };
  const auto user_data = bytes({0, 0, 0, 0});
  const auto two = bytes({0, 0, 0, 2});
  EXPECT_TRUE(assigns_owner_partition(version + two + topic('u', {0, 1}) + topic('t', {1, 0}) + user_data, "t"));
  EXPECT_FALSE(assigns_owner_partition(version + two + topic('u', {0}) + topic('t', {1}) + user_data, "t"));
  const auto whole = version + two + topic('t', {1}) + topic('t', {2, 0}) + user_data;
  for (std::size_t size = 0; size < whole.size() - user_data.size(); ++size)
    EXPECT_FALSE(assigns_owner_partition(whole.substr(0, size), "t")) << "cut short at " << size;
  EXPECT_FALSE(assigns_owner_partition(version + bytes({255, 255, 255, 255}), "t"));
  EXPECT_FALSE(assigns_owner_partition(version + bytes({127, 255, 255, 255}) + bytes({255, 255}), "t"));
}

TEST(Reaper, AChildOfForkMakesItsOwnWhateverAnotherThreadDidMeanwhile) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "such a child's threads get stacks that the sanitizer takes for the parent's, or none at all";
#endif
  Reaper::instance();
  const std::jthread other([](std::stop_token stop) {
    while (!stop.stop_requested()) Reaper::instance();
  });
  for (int i = 0; i < 100; ++i) {
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      Reaper::instance();
      std::_Exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "child " << i;
  }
}

/// A read that blocks on, of a seat in a static variable.
TEST(Reaper, AThreadThatOutlivesTheExitEndsNoProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exits = [] {
    // At the end these run from the last to the first: that of the reaper's between them.
    std::atexit([] { std::_Exit(0); });
    std::atexit([] {
      std::thread endless([] {
        for (;;) ::pause();
      });
      Reaper::instance().join(std::move(endless), std::make_shared<const std::atomic<bool>>(false));
    });
    Reaper::instance();
    std::exit(2);
  };
  EXPECT_EXIT(exits(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenure::kafka
