// SPDX-License-Identifier: Apache-2.0
// Many elections in one Kafka consumer group, for Elections: "roles".
#pragma once
#include <memory>

#include <tenure/group_store.hpp>
#include <tenure/kafka.hpp>

namespace tenure::kafka {

inline constexpr int default_units = 16;

/// Opens a group of elections. Kafka's group coordinator deals out units of them to the processes. A hash of its name
/// decides to which of the `units` an election belongs. The process that owns a unit leads those of its elections that
/// it joined. So there should be several times as many units as processes. More elections than units cost nothing more.
///
/// One offset commit per Timing::renew keeps all that a process leads. When the group's members change, each process
/// goes on leading what stays with it. What moves is ended by its old owner first (Reason::handed_over). Then its new
/// owner leads it with a greater token.
///
/// REQUIRES: all processes of a group give the same group, topic and `units`, and join the same elections. If the owner
/// of a unit has not joined one of its elections, nobody leads that one. The topic has 3 * `units` partitions, which
/// are empty and whose number never changes. With Options::create_topic it is created so. By default its name is group
/// + ".roles". No other consumer is in the group, and no single election either.
///
/// Elections::resign() ends a tenure here, but the same process leads again after the cool-down, because it owns the
/// unit. Spread has no effect apart from `most`. GroupStore::request_step_down() is not offered, so
/// Options::remote_step_down is refused.
///
/// Threads, costs and rights are those of open(). Throws as open() does, and std::invalid_argument unless `units` is
/// from 1 to 256.
TENURE_KAFKA_EXPORT std::shared_ptr<GroupStore> open_group(Options options, int units = default_units);

/// Opens a group by URL, as open_url() does: "kafka://host:port/topic?units=16". Opening::election is the group's name,
/// unless the URL says `group`.
TENURE_KAFKA_EXPORT OpenedGroup open_group_url(const Opening& opening);

}  // namespace tenure::kafka
