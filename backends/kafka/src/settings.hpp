// SPDX-License-Identifier: Apache-2.0
// What an opening asks for becomes Options, which are completed and checked once. All else is told by these: the pace,
// and the properties of librdkafka. Secrets are known by name.
#pragma once
#include <librdkafka/rdkafka.h>

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenure/exclusive.hpp>
#include <tenure/kafka_group.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/result.hpp>

namespace tenure::kafka {

/// Throws std::invalid_argument.
[[noreturn]] void refuse(const std::string& what);

// ---- read ----

struct Asked {
  Options options;           ///< Not completed.
  Presets presets;           ///< What suits the brokers' shortest session, and the mode.
  int units{default_units};  ///< Of a group; so is the next one.
  Exclusive exclusive{Exclusive::yes};
};
/// What a URL and the settings beside it ask for, of an election or of a group. Throws std::invalid_argument.
Asked asked_by(const Opening& opening, bool group = false);

// ---- completed and checked ----

/// Options with every default filled in. Throws std::invalid_argument for what can never work.
Options completed(Options options);

// ---- told ----

/// How a candidate runs by a Timing.
struct Pace {
  Clock::Duration session, heartbeat, observe_every;
};
Result<Pace> pace_of(const Timing& timing, const Options& options);

/// The same for a member of a group of elections.
Result<Pace> group_pace_of(const Timing& timing, const Options& options, Exclusive exclusive);

/// How long the others wait in a rebalance for a member that does not join it.
constexpr Clock::Duration rebalance_of(const Pace& pace) { return 2 * pace.session; }

/// How long a role must be presumed to be ours after its last acknowledged commit was sent, so that it has a leader
/// until its next owner has its assignment. Rule S5 of the README of this room tells what each part is for.
Clock::Duration least_presumption(const Pace& pace, const Options& options);

using Conf = CHandle<rd_kafka_conf_t, rd_kafka_conf_destroy>;

using Properties = std::map<std::string, std::string>;

/// The client id of handles that join no group.
inline constexpr std::string_view observer_client_id = "tenure.observer";

/// What common_properties() has for consumers alone.
inline constexpr const char* consumer_properties[] = {"group.id",
                                                      "isolation.level",
                                                      "enable.auto.commit",
                                                      "enable.auto.offset.store",
                                                      "allow.auto.create.topics",
                                                      "queued.max.messages.kbytes",
                                                      "session.timeout.ms"};
/// The properties of every handle of a candidate; `options.properties` are among them.
Properties common_properties(const Options& options, const std::string& group);
/// The properties of a member of the group.
Properties member_properties(const Options& options, const Pace& pace, const std::string& client_id);

/// Refuses what the election decides, or what would make a client wait too long. Throws std::invalid_argument.
void check_not_owned(const Properties& properties);

/// True for a property whose value no log, error or description may show.
bool secret(std::string_view property);

std::vector<std::string> secrets_of(const Properties& properties);
/// Removes the values of secret properties from texts of the client.
Redactor redactor_of(const Properties& properties);

/// What to change so that TLS protects the connections. Empty: it does.
std::string tls_remedy(const Options& options);
/// The brokers that are reached over a network, so no loopback addresses.
std::vector<std::string> hosts_of_a_network(const Options& options);

std::string requests_group(const std::string& group);

}  // namespace tenure::kafka
