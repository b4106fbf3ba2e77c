// SPDX-License-Identifier: Apache-2.0
// Many elections in one Kafka consumer group, for Elections: "roles".
#pragma once
#include <memory>

#include <tenure/exclusive.hpp>
#include <tenure/group_store.hpp>
#include <tenure/kafka.hpp>

namespace tenure::kafka {

inline constexpr int default_units = 16;

/// Opens a group of elections. Kafka's group coordinator deals out units of them to the processes. An election whose
/// name is a number j, such as "17", belongs to unit j modulo `units`. Any other one belongs to the unit that a hash of
/// its name gives. The process that owns a unit leads those of its elections that it joined. So there should be several
/// times as many units as processes. More elections than units cost nothing more.
///
/// One offset commit per Timing::renew keeps all that a process leads. When the group's members change, each process
/// goes on leading what stays with it. What moves is ended by its old owner first (Reason::handed_over). Then its new
/// owner leads it with a greater token.
///
/// REQUIRES: all processes of a group give the same group, topic and `units`, and join the same elections. If the owner
/// of a unit has not joined one of its elections, nobody leads that one. The topic has 3 * `units` partitions, which
/// are empty. With Options::create_topic it is created so. By default its name is group + ".roles". No other consumer
/// is in the group, and no single election either: it would own units, and nobody would lead their roles. A warning
/// names it once they had no leader for a term; a member of goNELI would lead, too. One of group.protocol=consumer
/// converts the group; brokers from 4.0 on keep it out by group.consumer.migration.policy=disabled.
///
/// To grow while processes run: add partitions to the topic, so that it has room for a multiple of `units`. Some ten
/// seconds later what moves to another unit is handed over (Reason::handed_over), and so are the elections of unit 0.
/// With FirstClaim::wait what moves to a new unit has no leader for a term. Processes may be started with the old
/// number or the new one. The number never falls. With Exclusive::no it cannot grow: stop all processes first. If you
/// set topic.metadata.refresh.interval.ms above its 5 s here, what moves may have no leader for that long.
///
/// With Exclusive::no at least one process leads each role at any time, wherever one lives: see below.
///
/// Elections::resign() and Hooks::stall_after end a tenure here, but the same process leads again after the cool-down
/// or the pause, and nobody meanwhile, because it owns the unit. Elections refuse a Spread that says otherwise. A
/// process leaves the group if it may lead nothing for a term: all its elections pause, or all its hook threads hang.
/// Others then lead, and it comes back as soon as it may. GroupStore::request_step_down() is not offered, so
/// Options::remote_step_down is refused.
///
/// A GroupObserver reads the offsets, and joins no group. Name the elections to it: records tell units alone.
///
/// One thread at a time calls the store, as Elections does. Unlike other stores it takes no second call while a thread
/// is in GroupStore::await_change().
///
/// Otherwise threads, costs and rights are those of open(). Throws as open() does, and std::invalid_argument unless
/// `units` is from 1 to 256.
TENURE_KAFKA_EXPORT std::shared_ptr<GroupStore> open_group(Options options, int units = default_units,
                                                           Exclusive exclusive = Exclusive::yes);

/// The timings that suit a group. With Exclusive::yes they are presets().
///
/// With Exclusive::no a process leads a role as soon as the role's unit is assigned to it and its first commit is
/// acknowledged, and waits for nobody's lease. When it loses the unit, it leads on until it has seen that the new owner
/// leads. It leads no longer than term - margin after its last acknowledged commit for that unit was sent. So two lead
/// a role at once for at most that long. REQUIRES: term - margin is at least two sessions, a rebalance (two sessions
/// more) and socket.timeout.ms. Else the store refuses the Timing. renew is at most a third of the session. By default
/// Options::observe_every is the heartbeat, however short that is.
///
/// A process that cannot reach the brokers, or gets no answers, leads until the others have taken over. A role has no
/// leader if its process crashes, is paused for longer than term - margin, or stops: until the others have noticed.
/// That takes a session and a rebalance after a crash, and one heartbeat after stop(). Only a second group of other
/// processes bridges that.
///
/// REQUIRES: all processes of a group have the same mode. One that finds the other mode claims nothing, and says so.
///
///             term     session   two lead a role at most   no leader after a crash at most
///   fast      26.5 s   6 s       26 s                      18 s
///   balanced  50.75 s  12 s      50 s                      36 s
///   steady    83 s     20 s      82 s                      60 s
TENURE_KAFKA_EXPORT Presets group_presets(Exclusive exclusive);

/// Opens a group by URL, as open_url() does: "kafka://host:port/topic?units=16&exclusive=no". Opening::election is the
/// group's name, unless the URL says `group`. `exclusive` is yes or no.
TENURE_KAFKA_EXPORT OpenedGroup open_group_url(const Opening& opening);

}  // namespace tenure::kafka
