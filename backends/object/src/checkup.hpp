// SPDX-License-Identifier: Apache-2.0
// What operators ask: whether the bucket, and our rights there, will do for elections.
#pragma once
#include <string>

#include <tenure/check.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "options.hpp"

namespace tenure::object {

/// It writes one object, PREFIX/.doctor, and no record. REQUIRES: the options are checked.
Result<Checks> check_up(const Options& options, const std::string& election, const Limit& limit);

}  // namespace tenure::object
