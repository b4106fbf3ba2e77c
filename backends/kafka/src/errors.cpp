// SPDX-License-Identifier: Apache-2.0
// The table of librdkafka's error codes, with their faults and remedies.
#include "errors.hpp"

#include <cstring>
#include <string_view>

#include <tenure/kit/logging.hpp>

namespace tenure::kafka {
namespace {

std::string create_command(const Target& target) {
  return "kafka-topics --bootstrap-server " + target.brokers + " --create --topic " + target.topic + " --partitions " +
         std::to_string(target.partitions);
}

}  // namespace

rd_kafka_resp_err_t known(int code) {
  const bool fits = code >= RD_KAFKA_RESP_ERR__BEGIN && code < RD_KAFKA_RESP_ERR_END_ALL;
  return fits ? static_cast<rd_kafka_resp_err_t>(code) : RD_KAFKA_RESP_ERR_UNKNOWN;
}

rd_kafka_resp_err_t known_at(const rd_kafka_resp_err_t& code) {
  int read = 0;
  static_assert(sizeof read == sizeof code);
  std::memcpy(&read, &code, sizeof read);  // loaded as the enum, it would be undefined
  return known(read);
}

// By TLS 1.3 a client hears of it only after its handshake.
rd_kafka_resp_err_t meant_by(rd_kafka_resp_err_t code, std::string_view text) {
  const bool alerted = code == RD_KAFKA_RESP_ERR__TRANSPORT && text.find("SSL alert") != text.npos;
  return alerted ? RD_KAFKA_RESP_ERR__SSL : code;
}

/// A topic may be missing for a while only.
bool needs_the_user(rd_kafka_resp_err_t code) {
  return refusal(explain(code, {}, {}, Redactor({}))) && outcome_of(code) != Outcome::unknown_topic &&
         code != RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC && code != RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

bool needs_the_user(rd_kafka_resp_err_t code, std::string_view text) {
  return needs_the_user(code) || text.find("Too many open files") != text.npos;
}

bool turned_away(rd_kafka_resp_err_t code, std::string_view text) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL: return true;
    case RD_KAFKA_RESP_ERR__TRANSPORT:
      return text.find("SSL") != text.npos || text.find("while requesting ApiVersion") != text.npos;
    default: return false;
  }
}

std::string without_guess(std::string text) {
  constexpr std::string_view guess = "probably due to broker version < 0.10";
  if (const auto at = text.find(guess); at != text.npos)
    text.replace(at, guess.size(), "the broker accepted the connection and does not answer: it may hang");
  return text;
}

Error explain(rd_kafka_resp_err_t code, const std::string& context, const Target& target, const Redactor& redacted) {
  auto message = std::string(rd_kafka_err2name(code));
  if (!context.empty()) message += ": " + printable(redacted(without_guess(context)), 300);
  const auto with = [&](Fault fault, const std::string& remedy) { return Error{fault, message + ". " + remedy}; };
  switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return {Fault::fenced, message};
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
      return with(Fault::misconfigured,
                  "The session must be between the broker's group.min.session.timeout.ms (6 s by default) and "
                  "group.max.session.timeout.ms. Choose another term or Options::session, or change that property");
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
      return with(Fault::misconfigured, "Consumers of another kind are in group \"" + target.group +
                                            "\". Give the election a group of its own: Options::group");
    case RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED:
      return with(Fault::misconfigured, "The broker's group.max.size allows no more candidates. Raise it");
    case RD_KAFKA_RESP_ERR_INVALID_GROUP_ID:
      return with(Fault::misconfigured,
                  "The broker refuses the group name \"" + target.group + "\". Choose another one: Options::group");
    case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
      return with(Fault::misconfigured, "The broker's offset.metadata.max.bytes must be at least 1024");
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return with(Fault::misconfigured, "Topic \"" + target.topic + "\" is missing. Create it: " +
                                            create_command(target) + " (or set Options::create_topic)");
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return with(Fault::forbidden, "This principal needs READ on group \"" + target.group + "\"");
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return with(Fault::forbidden, "This principal needs READ on topic \"" + target.topic + "\"");
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return with(Fault::forbidden, "This principal needs CREATE on topic \"" + target.topic + "\" or the cluster");
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
      return with(
          Fault::forbidden,
          "Check security.protocol, sasl.* and ssl.* in Options::properties, and what Options::oauth_token gives");
    case RD_KAFKA_RESP_ERR__RESOLVE:
      return with(Fault::unreachable,
                  "If you did not give that name, the brokers tell it: set their advertised.listeners to names that "
                  "this host can resolve");
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT: return {Fault::timed_out, message};
    default: return {Fault::unreachable, message};
  }
}

std::string throttled(const std::string& broker, int ms) {
  return "the broker " + printable(broker, 80) + " holds answers to this client back for " + std::to_string(ms) +
         " ms, because a quota is used up: leads may lapse. Raise request_percentage for this user or client id";
}

Outcome outcome_of(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return Outcome::accepted;
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return Outcome::fenced;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: return Outcome::unknown_topic;
    default: return Outcome::failed;
  }
}

std::string reading_failed(rd_kafka_resp_err_t code) {
  std::string what = "reading the record";
  switch (code) {
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
      return what + ": no coordinator of the group answered. A new cluster has none until as many brokers run as " +
             "offsets.topic.replication.factor says (3 by default)";
    default: return what;
  }
}

}  // namespace tenure::kafka
