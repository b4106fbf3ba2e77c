// SPDX-License-Identifier: Apache-2.0
// A request to step down, from whoever is no candidate. The README of this room has the rule, number 20.
#pragma once
#include <optional>

#include <tenure/conditional_store.hpp>
#include <tenure/kafka.hpp>

namespace tenure::kafka {

/// Asks whoever leads now, by handles of its own: who only asks takes no part. The request's token is found here.
/// REQUIRES: completed options. Throws if no handle can be made.
std::optional<Error> ask_to_step_down(const Options& options, const StepDown& request, const Limit& limit);

}  // namespace tenure::kafka
