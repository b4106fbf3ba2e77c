// SPDX-License-Identifier: Apache-2.0
// Elections through a Kafka consumer group. The owner of partition 0 of a topic may claim the lead, and an acknowledged
// offset commit proves that it leads. Nothing is ever written to the topic or fetched from it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/kafka_export.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>
#include <tenure/timing.hpp>

namespace tenure::kafka {

/// For a topic that does not exist yet.
struct CreateTopic {
  int partitions{2};           ///< At least 2: partition 1 proves that what is read of partition 0 is current.
  int replication_factor{-1};  ///< -1: the broker's default.
};

/// When the very first leader of a new group may begin.
enum class FirstClaim {
  at_once,  ///< Once it owns partition 0, if the group is new and unknown to this process; otherwise a term later.
            ///< REQUIRES: nobody deletes the group or the topic within a term of use.
  wait,     ///< Always a term after it came to own partition 0.
};

/// One candidate's options. Group and topic together name the election; every candidate must use the same.
struct Options {
  std::string brokers{};  ///< "host:port,...", librdkafka's bootstrap.servers. Required.
  /// The leader group; empty: the program's file name. No other consumer may use it. If its client id sorts first, or
  /// it is of group.protocol=consumer, it would own partition 0 and nobody would lead; a warning names it then. Brokers
  /// from 4.0 on keep the latter out by group.consumer.migration.policy=disabled.
  std::string group{};
  std::string topic{};    ///< Empty: group + ".neli". Two or more partitions, all empty; elections may share it.
  Candidate candidate{};  ///< Empty name: "{host}_{pid}_{unix seconds}".

  /// By default both follow from the Timing: heartbeat = renew / 2, from 100 ms to 3 s; session = term - margin -
  /// heartbeat, at least 6 s. The broker demands group.min.session.timeout.ms (6 s) <= session <=
  /// group.max.session.timeout.ms (30 min).
  std::optional<Clock::Duration> session{}, heartbeat{};
  /// How often a follower reads who leads. By default as the heartbeat, twice as often below 500 ms.
  std::optional<Clock::Duration> observe_every{};

  /// Further properties of librdkafka: security.protocol, sasl.*, ssl.*, client.rack, ... The election itself decides
  /// some (group.id, session.timeout.ms, ...). These are refused, with the reason and the option to use.
  std::map<std::string, std::string> properties{};

  std::optional<CreateTopic> create_topic{};  ///< Create a missing topic; by default it is an error. Needs CREATE.
  FirstClaim first_claim{FirstClaim::at_once};
  bool remote_step_down{
      false};  ///< Obey Backend::request_step_down(). Costs one more client handle, and a read every 3 s.
  /// Gets the lines of librdkafka, too: capped, printable, without secrets. Not called once the backend is destroyed.
  Log log{};
};

/// A backend for a LeaderManager or an Observer of its own. Any thread may destroy it, but not from within `log`. In a
/// forked child its verbs are Fault::misconfigured, and its destructor does nothing.
///
/// Needs two threads and two client handles: with librdkafka's own and a LeaderManager's about 13 threads and 25
/// descriptors, so that 40 elections reach the usual limit of 1024. Joins the group at the first acquire(). Leaves it
/// by release(), by destruction, or when no call came for a term.
///
/// On the cluster it needs READ on the topic and on the group; no WRITE. A request to step down needs READ on
/// group + ".requests" as well, both to ask and to obey. A leader without remote_step_down never hears of it. The verbs
/// return what is wrong there as an Error, for instance a missing topic. Throws std::invalid_argument for an option
/// that can never work, std::system_error if threads or descriptors have run out.
TENURE_KAFKA_EXPORT std::shared_ptr<Backend> open(Options options);

/// A backend by URL: "kafka://host:port,host:port/topic?group=...". User and password: sasl.username, sasl.password.
/// Without a topic: group + ".neli". Settings: `group` names the group instead of the election (one election per
/// group and topic); `create_topic` and `remote_step_down` (true or false), `first_claim` (at_once or wait) as in
/// Options; all others are properties of librdkafka. Throws as open() does.
TENURE_KAFKA_EXPORT Opened open_url(const Opening& opening);

/// Timings that suit Kafka: a crashed leader is replaced when its session and its lease have run out.
/// REQUIRES: every candidate's clock keeps Timing::clock_rate_error.
///             term     crash fail-over   a coordinator's crash (9 to 15 s)
///   fast      6.25 s   5.9 - 6.4 s       another leader after about 15 s
///   balanced  13 s     12.3 - 13.3 s     ridden out, if it was not the controller too
///   steady    22 s     20.7 - 21.6 s     ridden out
TENURE_KAFKA_EXPORT Presets presets();

/// For logs: no secret in it.
TENURE_KAFKA_EXPORT std::string to_string(const Options& options);

}  // namespace tenure::kafka
