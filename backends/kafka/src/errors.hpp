// SPDX-License-Identifier: Apache-2.0
// What librdkafka's error codes mean to a user and to a candidate.
#pragma once
#include <librdkafka/rdkafka.h>

#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/kit/security.hpp>

#include "group.hpp"

namespace tenure::kafka {

/// A broker may tell any code, and the enum has room for few. One that this librdkafka does not know is
/// RD_KAFKA_RESP_ERR_UNKNOWN. Call it before the code is kept anywhere.
rd_kafka_resp_err_t known(int code);
rd_kafka_resp_err_t known_at(const rd_kafka_resp_err_t& code);  ///< The same for what librdkafka has kept.

/// What a handle works on. Error messages name it, to say what would be right.
struct Target {
  std::string brokers, group, topic;
  int partitions{2};  ///< The topic needs so many.
};

/// What an error of the client means to a user, with the remedy. `context` is the client's own text.
Error explain(rd_kafka_resp_err_t code, const std::string& context, const Target& target, const Redactor& redacted);

/// The code that fits what librdkafka says of an error: a refused certificate of ours comes as a failed transport.
rd_kafka_resp_err_t meant_by(rd_kafka_resp_err_t code, std::string_view text);

/// True for an error that only a user can mend, though the client goes on trying.
bool needs_the_user(rd_kafka_resp_err_t code);
bool needs_the_user(rd_kafka_resp_err_t code, std::string_view text);  ///< Also want of descriptors, which has no code.

/// True for an error that files of certificates or passwords may have caused. A broker that refuses a certificate may
/// just close the connection.
bool turned_away(rd_kafka_resp_err_t code, std::string_view text);

/// librdkafka takes a broker that hangs for one that is too old to answer.
std::string without_guess(std::string text);

/// What it means that a broker holds answers back for so long.
std::string throttled(const std::string& broker, int ms);

/// What was tried, and the commonest reason if nobody answered.
std::string reading_failed(rd_kafka_resp_err_t code);

/// What the coordinator's answer to a commit means.
Outcome outcome_of(rd_kafka_resp_err_t code);

}  // namespace tenure::kafka
