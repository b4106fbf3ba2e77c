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
  rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_VALUE(total.data(), total.size()),
                    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  return transactions.commit(*token, 5s) == tenure::kafka::Transactions::Outcome::committed;
  //! [transaction]
}
