// SPDX-License-Identifier: Apache-2.0
// The candidate of many elections, as a process.
#pragma once
#include <csignal>

#include "journal.hpp"

namespace tenure::test {

/// The candidate of many elections of one group. REQUIRES: `signals` are blocked; they tell it what to do.
int run_many(const Options& args, const Journal& journal, const sigset_t& signals);

}  // namespace tenure::test
