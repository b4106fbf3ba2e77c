// SPDX-License-Identifier: Apache-2.0
// Groups of elections for a store that keeps single records: a GroupStore of any ConditionalStore.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/export.hpp>
#include <tenure/group_store.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

namespace tenure {

/// Where a group's records are. Each function opens a record of its own, and may throw. They are called on the thread
/// that calls the store.
struct GroupRecords {
  /// The record of a session. The slots are used from 0 on, and again when their sessions were swept.
  std::function<std::shared_ptr<ConditionalStore>(std::size_t slot)> session{};
  std::function<std::shared_ptr<ConditionalStore>(const std::string& election)> lead{};
  /// The elections that may have been led. It is asked at every look. A fixed list will do.
  std::function<Result<std::vector<std::string>>(const Limit&)> elections{};
};

/// A group whose sessions and leads are records of their own. A process still writes once per Timing::renew; but a look
/// reads every record, so this suits tens of elections rather than thousands.
///
/// It promises what GroupStore does, except:
///  - A commit is not one step. It renews the session first, and then carries out each change in a step of its own. If
///    the renewal is refused, nothing is done. If it is granted, each change is answered for itself. A change that got
///    no answer may take effect later, also after the end of its session: its election is then free for others.
///  - A sweep may remove a session that such a late claim names. Its election is free for others after a term.
///  - No change is pushed: a hand-over takes until the successor's next renewal.
///
/// No two lead at once for all that: core/src/group/README.md says why.
///
/// A record that cannot be read costs its own election alone: see Look::unreadable.
///
/// REQUIRES: the store loses no record (Read::absence_certain); otherwise every call returns an error. And it replaces
/// a record under the exclusion of all others. file::store() does not: of a renewal and of another's end of that
/// session at one moment, both may be answered as done. Lead by no group over the records of files. Throws
/// std::invalid_argument if a function is missing.
TENURE_EXPORT std::shared_ptr<GroupStore> one_by_one(std::string group, GroupRecords records);

}  // namespace tenure
