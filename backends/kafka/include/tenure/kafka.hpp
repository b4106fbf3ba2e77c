// SPDX-License-Identifier: Apache-2.0
// Elections through a Kafka consumer group. The owner of partition 0 of a topic may claim the lead, and an acknowledged
// offset commit proves that it leads. Nothing is ever written to the topic or fetched from it.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/check.hpp>
#include <tenure/kafka_export.hpp>
#include <tenure/kafka_token.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>
#include <tenure/timing.hpp>

namespace tenure::kafka {

/// How to create a topic that does not exist yet.
struct CreateTopic {
  /// REQUIRES: at least 2. A commit to partition 1 proves that what is read of partition 0 is current.
  int partitions{2};
  int replication_factor{-1};  ///< With -1 the broker's default holds.
};

/// When the very first leader of a new group may begin.
enum class FirstClaim {
  /// It claims once it owns partition 0, if the group is new and this process has never seen a record of it. Otherwise
  /// it claims a term later. REQUIRES: nobody deletes the group or the topic within a term of use.
  at_once,
  wait,  ///< It always claims a term after it came to own partition 0.
};

/// One candidate's options. Group and topic together name the election: all its candidates must use the same two.
struct Options {
  std::string brokers{};  ///< "host:port,...": librdkafka's bootstrap.servers. REQUIRES: it is set.

  /// The group that elects. If this is empty, the group has the name of the program's file. REQUIRES: no other consumer
  /// is in it. One of group.protocol=consumer, a Java consumer with a group.instance.id (also for a session after its
  /// end), or one whose client id sorts first would own partition 0. Nobody would lead then, and a warning would name
  /// it; a member of goNELI would lead, too. The brokers' group.consumer.migration.policy=disabled bars the first kind.
  std::string group{};
  /// The topic. If this is empty, it is group + ".neli". Elections may share a topic, each with its own group.
  /// REQUIRES: it has two partitions or more, and all are empty.
  std::string topic{};
  Candidate candidate{};  ///< If its name is empty, the name is "{host}_{pid}_{unix seconds}".

  /// The broker evicts a member that sent no heartbeat for a session. By default both follow from the Timing: heartbeat
  /// = renew / 2, from 25 ms to 3 s, and session = term - margin - heartbeat, at least min_session. The broker takes a
  /// session from group.min.session.timeout.ms to group.max.session.timeout.ms (30 min).
  std::optional<Clock::Duration> session{}, heartbeat{};
  /// The brokers' group.min.session.timeout.ms. Tell it if yours allow less: see own_broker_presets().
  Clock::Duration min_session{std::chrono::seconds(6)};
  /// A follower reads this often who leads. By default it is the heartbeat, or half of that if that is below 500 ms.
  std::optional<Clock::Duration> observe_every{};

  /// Further properties of librdkafka: security.protocol, sasl.*, ssl.*, ... Some are refused, with the reason, because
  /// the election decides them. No URL and no document can set those that load or run code.
  std::map<std::string, std::string> properties{};
  /// In place of sasl.username and .password. Asked for every handle: in open(), which fails if it throws, each time
  /// that the group is joined, and some seconds after a broker refused a login. It should be quick: before a joining no
  /// verb is served until it returns, and the lease of a leader that joins again may run out.
  AskCredentials credentials{};
  /// Where tokens come from if sasl.mechanism is OAUTHBEARER. librdkafka's sasl.oauthbearer.method=oidc needs none.
  OauthTokenSource oauth_token{};

  /// If set, a candidate creates a missing topic, by the right CREATE. By default a missing topic is an error.
  std::optional<CreateTopic> create_topic{};
  FirstClaim first_claim{FirstClaim::at_once};
  /// If true, a leader obeys Backend::request_step_down(). It costs a third handle, and a read every 3 s.
  bool remote_step_down{false};
  /// It also gets librdkafka's lines, shortened and without secrets. Nobody calls it once the backend is destroyed.
  Log log{};
};

/// Returns a backend, for one LeaderManager or one Observer. It connects to nothing yet. It joins the group at the
/// first acquire(). It leaves the group by release(), by its destruction, or when no call came for a term.
///
/// Threads: any thread may destroy it, but not from a function in `options`. In a forked child its verbs return
/// Fault::misconfigured, and its destructor does nothing.
///
/// What it costs: about 13 threads and 25 descriptors. So 40 elections reach the usual limit of 1024 descriptors.
/// Thousands in <tenure/kafka_group.hpp> cost as much as one.
///
/// Rights: READ on the topic and on the group, and no WRITE; for requests to step down also READ on group +
/// ".requests". A leader without remote_step_down never hears of a request, although that is stored.
///
/// Throws std::invalid_argument for an option that can never work, std::system_error for want of threads or
/// descriptors. The verbs return as an Error what is wrong at the cluster, for instance that the topic is missing.
TENURE_KAFKA_EXPORT std::shared_ptr<Backend> open(Options options);

/// Opens a backend by URL: "kafka://host:port,host:port/topic?group=...". The user and the password become
/// sasl.username and sasl.password. If the URL has no topic, the topic is group + ".neli".
/// Without the setting `group`, the group has the election's name. With it that name counts for nothing: give each
/// election a group of its own. With min_session_ms=100 the presets are own_broker_presets(). `create_topic` and
/// `remote_step_down` are true or false, and `first_claim` is at_once or wait: see Options. All other settings are
/// properties of librdkafka. Throws as open() does. To check_up() a broker tells its settings if we have the right
/// DESCRIBE_CONFIGS on the cluster.
TENURE_KAFKA_EXPORT Opened open_url(const Opening& opening);
TENURE_KAFKA_EXPORT Result<Checks> check_url(const Opening& opening, const Limit& limit);  ///< For check_up().

/// Timings that suit Kafka. A crashed leader is replaced when both its session and its lease have run out.
/// REQUIRES: every candidate's clock keeps Timing::clock_rate_error.
///             term     crash fail-over   a coordinator's crash (9 to 15 s)
///   fast      6.25 s   5.9 - 6.4 s       another leader after about 15 s
///   balanced  13 s     12.3 - 13.3 s     the leader stays, if that broker was not the controller too
///   steady    22 s     20.7 - 21.6 s     the leader stays
TENURE_KAFKA_EXPORT Presets presets();

/// The same for brokers of your own that have group.min.session.timeout.ms=100 and group.initial.rebalance.delay.ms=0.
/// REQUIRES: Options::min_session is 100 ms. A pause of a process, or of the broker, that is longer than a session ends
/// tenures: `fast` is for machines that do nothing else.
///             term     session
///   fast      160 ms   100 ms
///   balanced  500 ms   400 ms
///   steady    1.5 s    1.25 s
TENURE_KAFKA_EXPORT Presets own_broker_presets();

}  // namespace tenure::kafka
