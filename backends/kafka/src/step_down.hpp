// SPDX-License-Identifier: Apache-2.0
// A request to step down, from a process that need not be a candidate. The README of this room has the rule, number 20.
#pragma once
#include <optional>

#include <tenure/conditional_store.hpp>
#include <tenure/kafka.hpp>

namespace tenure::kafka {

/// Asks the present leader to step down, by handles of its own, because a process that only asks takes no part. It
/// finds the request's token itself. REQUIRES: the options are completed. Throws if no handle can be made.
std::optional<Error> ask_to_step_down(const Options& options, const StepDown& request, const Limit& limit);

}  // namespace tenure::kafka
