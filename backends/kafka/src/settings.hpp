// SPDX-License-Identifier: Apache-2.0
// Options turned into what the client is told: checked, completed, and with every secret known by name.
#pragma once
#include <librdkafka/rdkafka.h>

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenure/kafka.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/result.hpp>

namespace tenure::kafka {

/// Throws std::invalid_argument.
[[noreturn]] void refuse(const std::string& what);

/// Options with every default filled in. Throws std::invalid_argument for what can never work.
Options completed(Options options);

/// What a URL and what stands beside it ask for; not completed. Throws std::invalid_argument.
Options options_of(const Opening& opening);

/// How a candidate runs by a Timing.
struct Pace {
  Clock::Duration session, heartbeat, observe_every;
};
Result<Pace> pace_of(const Timing& timing, const Options& options);

using Conf = CHandle<rd_kafka_conf_t, rd_kafka_conf_destroy>;

using Properties = std::map<std::string, std::string>;

/// Of handles that join no group.
inline constexpr std::string_view observer_client_id = "tenure.observer";

/// What every handle of a candidate is told; `options.properties` among it.
Properties common_properties(const Options& options, const std::string& group);
/// ... and a member of the group.
Properties member_properties(const Options& options, const Pace& pace, const std::string& client_id);

/// True for a property whose value no log, error or description may show.
bool secret(std::string_view property);

/// Takes the values of secret properties out of texts that come from the client.
Redactor redactor_of(const Properties& properties);

/// Throws std::invalid_argument naming the property if librdkafka does not know it or its value.
void check_properties(const Properties& properties);

/// Bootstrap servers that are no loopback addresses, if what is sent there can be read on the way.
std::vector<std::string> plaintext_hosts(const Options& options);

std::string requests_group(const std::string& group);

}  // namespace tenure::kafka
