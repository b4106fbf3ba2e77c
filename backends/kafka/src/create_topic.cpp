// SPDX-License-Identifier: Apache-2.0
// The admin calls that look for a topic and create it.
#include "create_topic.hpp"

#include <string>

#include <tenure/kit/c_handle.hpp>

#include "errors.hpp"
#include "handle.hpp"

namespace tenure::kafka {
namespace {

/// Creates a topic by a handle of its own, so that admin calls never meet a candidate's handle. It blocks for 5 s at
/// most. Throws std::runtime_error, redacted, if librdkafka refuses the properties.
std::optional<Error> create_topic(const Properties& properties, const Target& target, const CreateTopic& how,
                                  ClosableLog& log) {
  auto plain = properties;
  for (const auto* consumer_only : consumer_properties) plain.erase(consumer_only);
  Callbacks callbacks{log};
  const auto handle = owned<end_handle>(make_handle(RD_KAFKA_PRODUCER, plain, callbacks));
  const auto queue = owned<rd_kafka_queue_destroy>(rd_kafka_queue_new(handle.get()));
  char why[512] = "";
  const auto topic = owned<rd_kafka_NewTopic_destroy>(
      rd_kafka_NewTopic_new(target.topic.c_str(), how.partitions, how.replication_factor, why, sizeof why));
  const auto failed = [&](rd_kafka_resp_err_t code, const std::string& text) {
    // A topic that may not be created is refused as one that may not be read is.
    const bool forbidden = code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    auto error =
        explain(forbidden ? RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED : code, text, target, log.redacted());
    error.message = "create_topic: " + error.message;
    if (error.fault == Fault::unreachable) error.fault = Fault::misconfigured;
    return error;
  };
  if (!topic) return failed(RD_KAFKA_RESP_ERR__INVALID_ARG, why);
  auto* topics = topic.get();
  rd_kafka_CreateTopics(handle.get(), &topics, 1, nullptr, queue.get());
  const auto event = owned<rd_kafka_event_destroy>(rd_kafka_queue_poll(queue.get(), 5000));
  if (!event) return Error{Fault::timed_out, "create_topic: no answer from " + target.brokers + " within 5 s"};
  if (const auto code = known(rd_kafka_event_error(event.get()))) {
    const auto* text = rd_kafka_event_error_string(event.get());
    return explain(code, std::string("create_topic: ") + (text ? text : ""), target, log.redacted());
  }
  std::size_t count = 0;
  const auto** results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = known(rd_kafka_topic_result_error(results[i]));
    if (!code) log.write(Level::info, "created topic " + target.topic);
    if (code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
      const auto* text = rd_kafka_topic_result_error_string(results[i]);
      return failed(code, text ? text : "");
    }
  }
  return std::nullopt;
}

}  // namespace

Result<int> topic_partitions(const Options& options, bool may_create, Client& observer, Waker& wakes,
                             ClosableLog& log) {
  bool missing = false;
  auto found = observer.partitions(read_limit, missing);
  if (found || !options.create_topic) return found;
  if (found.error().fault == Fault::forbidden)
    return Error{Fault::forbidden, found.error().message + ", and CREATE if it does not exist yet"};
  if (!missing) return found;
  if (!may_create) return 0;
  try {
    if (auto failed =
            create_topic(common_properties(options, options.group), target_of(options), *options.create_topic, log))
      return std::move(*failed);
  } catch (const std::exception& e) {
    return Error{Fault::misconfigured, std::string("create_topic: ") + e.what()};
  }
  // Until every broker knows of it.
  const auto by = boot_clock().now() + read_limit;
  do {
    wakes.wait_until(boot_clock().now() + read_limit / 30);
    found = observer.partitions(read_limit, missing);
  } while (missing && boot_clock().now() < by);
  if (missing)
    return Error{Fault::unreachable, "topic " + options.topic + " was created; not every broker knows it yet"};
  return found;
}

std::optional<Error> too_few(int partitions, const Options& options) {
  if (partitions >= 2) return std::nullopt;
  return Error{Fault::misconfigured,
               "Topic \"" + options.topic +
                   "\" has one partition; two are needed, because only a commit to partition 1 "
                   "proves that what is read of partition 0 is current. Add one: kafka-topics --bootstrap-server " +
                   options.brokers + " --alter --topic " + options.topic + " --partitions 2"};
}

}  // namespace tenure::kafka
