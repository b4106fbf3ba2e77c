// SPDX-License-Identifier: Apache-2.0
// Asks a cluster for its settings, and judges them.
#include "checkup.hpp"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/kit/wait.hpp>

#include "client.hpp"
#include "errors.hpp"
#include "handle.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;

constexpr const char* offsets_topic = "__consumer_offsets";

std::optional<long> whole(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? std::nullopt : number<long>(found->second);
}

Check of_topic(const TopicFacts& topic, const Options& options) {
  const auto name = "the topic " + printable(options.topic);
  if (topic.partitions == 0)
    return options.create_topic ? Check::fine(name + " does not exist; the first candidate creates it")
                                : Check::wrong(name + " does not exist",
                                               "kafka-topics --create --partitions 2 --topic " +
                                                   printable(options.topic) + ", or create_topic=true in the URL");
  const auto what = name + " has " + std::to_string(topic.partitions) + " partition(s) and " +
                    std::to_string(topic.replicas) + " replica(s)";
  if (topic.partitions < 2) return Check::wrong(what, "give it two partitions: kafka-topics --alter --partitions 2");
  return Check::fine(what);
}

/// A lead is an offset that was committed. Whoever loses it loses who leads.
Check of_offsets(const ClusterFacts& facts) {
  const bool there = facts.offsets.partitions > 0;
  const auto planned = facts.broker ? whole(*facts.broker, "offsets.topic.replication.factor") : std::nullopt;
  const auto replicas = there ? std::optional<long>(facts.offsets.replicas) : planned;
  if (!replicas)
    return Check::doubtful("the cluster does not tell how many replicas its committed offsets have",
                           "see that __consumer_offsets has three, and min.insync.replicas=2");
  const auto what =
      std::string(offsets_topic) + (there ? " has " : " will have ") + std::to_string(*replicas) + " replica(s)";
  const auto in_sync = whole(facts.offsets_topic, "min.insync.replicas");
  if (*replicas < 2)
    return Check::doubtful(what + ": without that broker nobody can lead, and its disk has the only record of who does",
                           "run it with three replicas and min.insync.replicas=2");
  if (in_sync && *in_sync < 2)
    return Check::doubtful(what + ", and min.insync.replicas is 1: a fail-over may lose who leads",
                           "kafka-configs --alter --topic __consumer_offsets --add-config min.insync.replicas=2");
  return Check::fine(what + (in_sync ? ", of which " + std::to_string(*in_sync) + " must acknowledge" : ""));
}

/// From 4.0 on there is no such setting, and all in sync acknowledge always.
Check of_acknowledgements(const Settings& broker) {
  const auto acks = whole(broker, "offsets.commit.required.acks");
  if (acks && *acks != -1)
    return Check::wrong("offsets.commit.required.acks is " + std::to_string(*acks) +
                            ": an acknowledged commit may be lost, and two may lead",
                        "leave it at its default, -1");
  return Check::fine("a commit is acknowledged by all replicas in sync");
}

Check of_sessions(const Settings& broker, const Options& options) {
  const auto least = whole(broker, "group.min.session.timeout.ms");
  const auto ours = std::chrono::duration_cast<milliseconds>(options.min_session).count();
  if (!least)
    return Check::doubtful("the broker does not tell group.min.session.timeout.ms", "it must not exceed ours");
  const auto what = "group.min.session.timeout.ms is " + std::to_string(*least);
  if (*least > ours)
    return Check::wrong(what + ", and our sessions may last " + std::to_string(ours) + " ms only: nobody can lead",
                        "write min_session_ms=" + std::to_string(*least) + " into the URL, or lower the broker's");
  return Check::fine(what + ", and our sessions last " + std::to_string(ours) + " ms or longer");
}

// ---- asking ----

/// Some of the time is kept for the next question.
int share_of(const Limit& limit) {
  const auto left = std::chrono::floor<milliseconds>(limit.by - limit.clock.now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left / 2, 1, 5000));
}

Result<TopicFacts> facts_of(rd_kafka_t* handle, const std::string& name, int& brokers, int& one_of_them,
                            const Limit& limit) {
  const auto topic = owned<rd_kafka_topic_destroy>(rd_kafka_topic_new(handle, name.c_str(), nullptr));
  const rd_kafka_metadata_t* answer = nullptr;
  if (const auto code = rd_kafka_metadata(handle, 0, topic.get(), &answer, share_of(limit)))
    return Error{Fault::unreachable, reading_failed(code)};
  const auto metadata = owned<rd_kafka_metadata_destroy>(answer);
  brokers = metadata->broker_cnt;
  if (brokers > 0) one_of_them = metadata->brokers[0].id;
  TopicFacts out;
  if (metadata->topic_cnt != 1) return out;
  const auto& found = metadata->topics[0];
  out.partitions = found.partition_cnt;
  for (int i = 0; i < found.partition_cnt; ++i)
    out.replicas = i == 0 ? found.partitions[i].replica_cnt : std::min(out.replicas, found.partitions[i].replica_cnt);
  return out;
}

Settings settings_in(const rd_kafka_ConfigResource_t* resource) {
  Settings out;
  std::size_t count = 0;
  const auto** entries = rd_kafka_ConfigResource_configs(resource, &count);
  for (std::size_t i = 0; i < count; ++i)
    if (const auto* value = rd_kafka_ConfigEntry_value(entries[i])) out[rd_kafka_ConfigEntry_name(entries[i])] = value;
  return out;
}

/// Why they are not told. A right can be granted, and an answer that came too late may come in time the next time.
Error untold(rd_kafka_resp_err_t code, const char* text) {
  const bool forbidden = code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
  const bool late = code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT;
  return {forbidden ? Fault::forbidden
          : late    ? Fault::timed_out
                    : Fault::unreachable,
          text ? text : rd_kafka_err2str(code)};
}

/// Of the broker and of the offsets' topic, by one request.
void ask_settings(rd_kafka_t* handle, int broker, ClusterFacts& out, const Limit& limit) {
  const auto queue = owned<rd_kafka_queue_destroy>(rd_kafka_queue_new(handle));
  const auto of_broker = owned<rd_kafka_ConfigResource_destroy>(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, std::to_string(broker).c_str()));
  const auto of_offsets =
      owned<rd_kafka_ConfigResource_destroy>(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, offsets_topic));
  rd_kafka_ConfigResource_t* asked[] = {of_broker.get(), of_offsets.get()};
  rd_kafka_DescribeConfigs(handle, asked, 2, nullptr, queue.get());
  const auto event = owned<rd_kafka_event_destroy>(rd_kafka_queue_poll(queue.get(), share_of(limit)));
  out.broker = Error{Fault::timed_out, "no answer in time"};
  if (!event) return;
  if (const auto code = known(rd_kafka_event_error(event.get()))) {
    out.broker = untold(code, rd_kafka_event_error_string(event.get()));
    return;
  }
  std::size_t count = 0;
  const auto** found =
      rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool whole_broker = rd_kafka_ConfigResource_type(found[i]) == RD_KAFKA_RESOURCE_BROKER;
    if (!whole_broker) {
      out.offsets_topic = settings_in(found[i]);
    } else if (const auto code = known(rd_kafka_ConfigResource_error(found[i]))) {
      out.broker = untold(code, rd_kafka_ConfigResource_error_string(found[i]));
    } else {
      out.broker = settings_in(found[i]);
    }
  }
}

}  // namespace

Checks checks_of(const ClusterFacts& facts, const Options& options) {
  Checks out{Check::fine("the cluster has " + std::to_string(facts.brokers) + " broker(s)"),
             of_topic(facts.topic, options), of_offsets(facts)};
  if (!facts.broker) {
    out.push_back(Check::doubtful("the broker does not tell its settings: " + printable(facts.broker.error().message),
                                  facts.broker.error().fault == Fault::forbidden
                                      ? "grant DESCRIBE_CONFIGS on the cluster, or ask an administrator"
                                      : "ask an administrator whether group.min.session.timeout.ms exceeds ours"));
    return out;
  }
  out.push_back(of_acknowledgements(*facts.broker));
  out.push_back(of_sessions(*facts.broker, options));
  return out;
}

/// As a consumer, because a producer that asks for a topic may create it.
Result<Checks> check_up(const Options& options, const Limit& limit) {
  ClosableLog log(options);
  Callbacks callbacks{log};
  const auto handle =
      owned<end_handle>(make_handle(RD_KAFKA_CONSUMER, common_properties(options, options.group), callbacks));
  ClusterFacts facts;
  int broker = 0;
  const auto topic = facts_of(handle.get(), options.topic, facts.brokers, broker, limit);
  if (!topic) return topic.error();
  facts.topic = *topic;
  const auto offsets = facts_of(handle.get(), offsets_topic, facts.brokers, broker, limit);
  if (!offsets) return offsets.error();
  facts.offsets = *offsets;
  ask_settings(handle.get(), broker, facts, limit);
  // A refusal is a finding. An answer that did not come in time is none, and may be asked for again.
  if (!facts.broker && facts.broker.error().fault == Fault::timed_out) return facts.broker.error();
  return checks_of(facts, options);
}

}  // namespace tenure::kafka
