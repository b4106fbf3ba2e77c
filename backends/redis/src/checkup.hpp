// SPDX-License-Identifier: Apache-2.0
// What operators ask: what a server's settings mean for elections.
#pragma once
#include <string>

#include <tenure/check.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "options.hpp"
#include "reply.hpp"

namespace tenure::redis {

extern const Script info_script;

/// Of a server's INFO. Pure.
Checks checks_of(const std::string& info, const Options& options);

Result<Checks> check_up(const Options& options, const Limit& limit);

}  // namespace tenure::redis
