// SPDX-License-Identifier: Apache-2.0
// What operators ask: which elections there are, and what a server's settings mean for elections.
#pragma once
#include <string>

#include <tenure/check.hpp>
#include <tenure/election_list.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "options.hpp"
#include "script.hpp"

namespace tenure::redis {

extern const Script info_script;

/// Of a server's INFO. Pure.
Checks checks_of(const std::string& info, const Options& options);

Result<Checks> check_up(const Options& options, const Limit& limit);

/// Those of one server, in the order of its SCAN.
ElectionList list_of(const Options& options, Log log);

}  // namespace tenure::redis
