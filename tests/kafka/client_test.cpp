// SPDX-License-Identifier: Apache-2.0
// Goal: what the coordinator says of assignments is understood, and nothing is committed that librdkafka would leave
// out. Method: by value; no broker.
#include "client.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace tenure::kafka {
namespace {

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

TEST(KafkaClient, AnErrorOfAPartitionIsTheErrorOfTheCommit) {
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

TEST(KafkaClient, ACodeThatTheClientLibraryDoesNotKnowIsAnUnknownError) {
  for (const int code : {32'000, -32'000, 1'000}) {
    List list;
    list.add("t", 0);
    std::memcpy(&list.get()->elems[0].err, &code, sizeof code);  // a broker tells any number of 16 bits
    EXPECT_EQ(error_of(RD_KAFKA_RESP_ERR_NO_ERROR, list.get()), RD_KAFKA_RESP_ERR_UNKNOWN) << code;
  }
  EXPECT_EQ(known(RD_KAFKA_RESP_ERR__SSL), RD_KAFKA_RESP_ERR__SSL);
}

TEST(KafkaClient, AnOffsetBelowZeroIsRefused) {
  Options options;
  options.brokers = "127.0.0.1:1";
  options.group = options.topic = "t";
  options.log = no_log;
  const auto client = make_observer(options, options.group, std::make_shared<ClosableLog>(options));
  for (const auto offset : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()})
    EXPECT_EQ(client->commit(1, {{0, {5, "x"}}, {3, {offset, "x"}}}), RD_KAFKA_RESP_ERR__INVALID_ARG);
}

TEST(KafkaLines, OfOneKindAreLoggedOnceAMinuteWithTheirNumber) {
  LineLimit limit;
  const auto now = Clock::Time(std::chrono::hours(1));
  const auto one = "[thrd:b:1/1]: b:1/1: Timed out 1 request";
  EXPECT_EQ(limit.told("REQTMOUT", one, now), "");
  EXPECT_EQ(limit.told("REQTMOUT", one, now + std::chrono::seconds(1)), std::nullopt);
  EXPECT_EQ(limit.told("REQTMOUT", "[thrd:b:1/1]: another text", now + std::chrono::seconds(59)), std::nullopt);
  EXPECT_EQ(limit.told("REQTMOUT", "[thrd:b:2/2]: another broker", now), "");
  EXPECT_EQ(limit.told("FAIL", one, now), "");
  EXPECT_EQ(limit.told("REQTMOUT", one, now + std::chrono::minutes(1)), " (and 2 more of this kind before)");
  for (int i = 0; i < 1000; ++i) limit.told(std::to_string(i), one, now);
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

TEST(KafkaClient, TheAssignmentOfAMemberIsRead) {
  const auto version = bytes({0, 1});
  const auto topic = [](char name, std::initializer_list<int> partitions) {
    auto out = bytes({0, 1, name, 0, 0, 0, static_cast<int>(partitions.size())});
    for (const int p : partitions) out += bytes({0, 0, 0, p});
    return out;
  };
  const auto user_data = bytes({0, 0, 0, 0});
  const auto two = bytes({0, 0, 0, 2});
  const std::vector<int> none;
  EXPECT_EQ(assigned_partitions(version + two + topic('u', {0, 1}) + topic('t', {3, 0}) + user_data, "t"),
            (std::vector{3, 0}));
  EXPECT_EQ(assigned_partitions(version + two + topic('u', {0}) + topic('t', {}) + user_data, "t"), none);
  const auto whole = version + two + topic('t', {1}) + topic('t', {2, 0}) + user_data;
  EXPECT_EQ(assigned_partitions(whole, "t"), (std::vector{1, 2, 0}));
  for (std::size_t size = 0; size < whole.size() - user_data.size(); ++size)
    EXPECT_LT(assigned_partitions(whole.substr(0, size), "t").size(), 3u) << "cut short at " << size;
  EXPECT_EQ(assigned_partitions(version + bytes({255, 255, 255, 255}), "t"), none);
  EXPECT_EQ(assigned_partitions(version + bytes({127, 255, 255, 255}) + bytes({255, 255}), "t"), none);
}

}  // namespace
}  // namespace tenure::kafka
