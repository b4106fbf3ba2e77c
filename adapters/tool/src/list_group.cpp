// SPDX-License-Identifier: Apache-2.0
// `tenure status --group`: who leads which election of a group.
#include <algorithm>
#include <iostream>
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

using Rows = std::vector<ObservedElection>;

bool unproven(const ObservedElection& row) { return leader_in(row.sight) && !row.renewed; }

/// Until each leader was seen to renew, or for so long.
Rows watched(const GroupObserver& observer, Clock::Time until) {
  for (;;) {
    auto rows = observer.changes() > 0 ? observer.all() : Rows();
    const bool wanting = observer.changes() == 0 || std::any_of(rows.begin(), rows.end(), unproven);
    if (!wanting || boot_clock().now() >= until) return rows;
    const auto error = observer.last_error();
    if (error && (error->fault == Fault::misconfigured || error->fault == Fault::forbidden)) fail(*error, unseen);
    sleep_for(std::chrono::milliseconds(20));
  }
}

std::string row_of(const ObservedElection& row, std::size_t width) {
  auto name = printable(row.election);
  name.resize(std::max(name.size(), width), ' ');
  return name + "  " + as_text(row.sight) +
         (unproven(row) ? "; not seen to renew, so that the store's clock alone tells that it lives" : "");
}

void print(const Rows& rows, bool json) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, printable(row.election).size());
  for (const auto& row : rows)
    std::cout << (json ? as_json(row.sight, row.election, {.age = {}, .renewed = row.renewed}) : row_of(row, width))
              << "\n";
  std::cout.flush();
}

}  // namespace

int print_group(const Place& place, const std::string& group, const Listing& listing) try {
  if (!place.file.empty()) throw Failed(usage, "--group does not go with -c: name the store by --store");
  auto opening = opening_of(place);
  opening.election = group;
  opening.log = no_log;
  const auto opened = open_many(opening);
  GroupObserverOptions options{.elections = {}, .changed = {}, .log = no_log};
  if (!place.election.empty()) options.elections.push_back(place.election);
  if (opened.store->allots() && options.elections.empty())
    throw Failed(usage, "over Kafka a group keeps no names of its elections: name one by -e");
  const auto timing = timing_of(place, opened.presets);
  const GroupObserver observer(opened.store, timing, options);
  auto rows = watched(observer, boot_clock().now() + std::max(listing.patience, timing.renew + timing.call));
  if (observer.changes() == 0)
    fail(observer.last_error().value_or(Error{Fault::timed_out, "the store has not answered"}), unseen);
  if (rows.empty()) throw Failed(vacant, "nobody ever led an election of the group \"" + group + "\"");
  std::stable_partition(rows.begin(), rows.end(), [](const auto& row) { return !leader_in(row.sight); });
  int code = ok;
  for (const auto& row : rows) code = worse(code, row.sight);
  const bool cut = rows.size() > listing.most;
  rows.resize(std::min(rows.size(), listing.most));
  print(rows, listing.json);
  if (cut)
    std::cerr << "tenure: there are more than " << listing.most << " elections; see them by a greater --limit"
              << std::endl;
  return code;
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace tenure::tool
