// SPDX-License-Identifier: Apache-2.0
// librdkafka's mock cluster, in this process, with a topic of two partitions.
#pragma once
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace tenure::kafka::test {

class Cluster {
 public:
  explicit Cluster(const std::string& topic) {
    char why[512] = "";
    rk_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why));
    if (!rk_) throw std::runtime_error(why);
    cluster_.reset(rd_kafka_mock_cluster_new(rk_.get(), 1));
    if (!cluster_) throw std::runtime_error("no mock cluster");
    if (rd_kafka_mock_topic_create(cluster_.get(), topic.c_str(), 2, 1)) throw std::runtime_error("no topic");
  }
  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_.get()); }
  // By the requests' numbers in Kafka's protocol.
  void next_heartbeat(rd_kafka_resp_err_t answer) { next(12, answer); }
  void next_join(rd_kafka_resp_err_t answer) { next(11, answer); }

 private:
  void next(std::int16_t request, rd_kafka_resp_err_t answer) {
    rd_kafka_mock_push_request_errors(cluster_.get(), request, 1, answer);
  }

  std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> rk_{nullptr, &rd_kafka_destroy};
  std::unique_ptr<rd_kafka_mock_cluster_t, decltype(&rd_kafka_mock_cluster_destroy)> cluster_{
      nullptr, &rd_kafka_mock_cluster_destroy};
};

}  // namespace tenure::kafka::test
