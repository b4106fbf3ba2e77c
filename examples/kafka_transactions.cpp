// SPDX-License-Identifier: Apache-2.0
// A leader over Kafka that produces in transactions which no former leader commits. Built if librdkafka is there.
#include <librdkafka/rdkafka.h>

#include <string>

#include <tenure/kafka_transactions.hpp>
#include <tenure/leadership.hpp>

using namespace std::chrono_literals;

bool publish(const tenure::Leadership& leadership, tenure::kafka::Transactions& transactions, const std::string& topic,
             std::string total);

bool publish(const tenure::Leadership& leadership, tenure::kafka::Transactions& transactions, const std::string& topic,
             std::string total) {
  //! [transaction]
  const auto token = leadership.guard(100ms);
  if (!token) return false;
  auto* producer = transactions.begin(5s);
  auto* to = rd_kafka_topic_new(producer, topic.c_str(), nullptr);
  const int refused =
      rd_kafka_produce(to, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, total.data(), total.size(), nullptr, 0, nullptr);
  rd_kafka_topic_destroy(to);
  if (refused) return transactions.abort(5s), false;  // its queue is full, or the message too long
  return transactions.commit(*token, 5s) == tenure::kafka::Transactions::Outcome::committed;
  //! [transaction]
}
