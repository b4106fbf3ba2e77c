// SPDX-License-Identifier: Apache-2.0
// `tenure status --group`: who leads which election of a group.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <tenure/group_observer.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/stores.hpp>

#include "durations.hpp"
#include "exit_code.hpp"
#include "list.hpp"
#include "look.hpp"
#include "sight.hpp"

namespace tenure::tool {
namespace {

bool unproven(const ObservedElection& row) { return leader_in(row.sight) && !row.renewed; }

/// Until each leader was seen to renew, or for so long.
std::vector<ObservedElection> watched(const GroupObserver& observer, Clock::Time until) {
  for (;;) {
    auto rows = observer.changes() > 0 ? observer.all() : std::vector<ObservedElection>();
    const bool wanting = observer.changes() == 0 || std::any_of(rows.begin(), rows.end(), unproven);
    if (!wanting || boot_clock().now() >= until) return rows;
    const auto error = observer.last_error();
    if (error && (error->fault == Fault::misconfigured || error->fault == Fault::forbidden)) fail(*error, unseen);
    sleep_for(std::chrono::milliseconds(20));
  }
}

Row row_of(const ObservedElection& of) {
  return {of.election,
          of.sight,
          unproven(of) ? "; not seen to renew, so that the store's clock alone tells that it lives" : "",
          {.renewed = of.renewed}};
}

}  // namespace

int print_group(const Place& place, const std::string& group, const Listing& listing) try {
  if (!place.file.empty()) throw Failed(usage, "--group does not go with -c: name the store by --store");
  auto opening = opening_of(place);
  only_ask(opening);
  opening.election = group;
  opening.log = no_log;
  const auto opened = open_many(opening);
  GroupObserverOptions options{.elections = {}, .changed = {}, .log = no_log};
  if (!place.election.empty()) options.elections.push_back(place.election);
  if (opened.store->allots() && options.elections.empty())
    throw Failed(usage, "over Kafka a group keeps no names of its elections: name one by -e");
  const auto timing = timing_of(place, opened.presets);
  const GroupObserver observer(opened.store, timing, options);
  std::vector<Row> rows;
  for (const auto& one : watched(observer, boot_clock().now() + std::max(listing.patience, timing.renew + timing.call)))
    rows.push_back(row_of(one));
  if (observer.changes() == 0)
    fail(observer.last_error().value_or(Error{Fault::timed_out, "the store has not answered"}), unseen);
  if (rows.empty()) throw Failed(vacant, "nobody ever led an election of the group \"" + group + "\"");
  std::stable_partition(rows.begin(), rows.end(), [](const auto& row) { return !leader_in(row.sight); });
  print(rows, listing);
  return code_of(rows);
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace tenure::tool
