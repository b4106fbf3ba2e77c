// SPDX-License-Identifier: Apache-2.0
// What operators ask: which elections there are, and what the server and our rights there mean for elections.
#pragma once
#include <tenure/check.hpp>
#include <tenure/election_list.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "settings.hpp"

namespace tenure::postgres {

Result<Checks> check_up(const Settings& settings, const Limit& limit);

/// In the order of their names.
ElectionList list_of(const Settings& settings);

}  // namespace tenure::postgres
