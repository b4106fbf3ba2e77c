// SPDX-License-Identifier: Apache-2.0
// Whether one process or several may lead an election of a group.
#pragma once
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// How many processes may lead one election of a group at once. A store has one of these modes (GroupStore::exclusive),
/// and a program names the one that it was written for (Elections).
enum class Exclusive {
  yes,  ///< At most one. There is no leader for a while after one was lost.

  /// At least one, wherever a process lives and reaches the store. When leads move, there may be two for a while. So
  /// there is no fencing token: Leadership::token() and guard() are empty, and the token of each hook is Token{}. It is
  /// for work that two may do at once, and that must not stop.
  no,
};

}  // namespace tenure
