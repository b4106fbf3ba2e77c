// SPDX-License-Identifier: Apache-2.0
// What the server and our rights there mean for elections.
#pragma once
#include <tenure/check.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "settings.hpp"

namespace tenure::postgres {

Result<Checks> check_up(const Settings& settings, const Limit& limit);

}  // namespace tenure::postgres
