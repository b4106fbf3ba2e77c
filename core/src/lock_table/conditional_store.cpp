// SPDX-License-Identifier: Apache-2.0
// The defaults of a ConditionalStore; and whether a record is as a write expects.
#include <tenure/conditional_store.hpp>

#include <algorithm>
#include <tenure/kit/wait.hpp>

#include "kit/no_step_down.hpp"

namespace tenure {

bool matches(const std::optional<Expected>& expected, const std::optional<Record>& record) {
  if (!expected || !record) return !expected && !record;
  return record->token == expected->token && (record->released || !expected->released) &&
         std::find(expected->beats.begin(), expected->beats.end(), record->beat) != expected->beats.end();
}

std::optional<Version> ConditionalStore::await_change(const std::optional<Version>&, const Limit& limit) {
  wait_out(limit);
  return std::nullopt;
}

std::optional<Error> ConditionalStore::request_step_down(const StepDown&, const Limit&) { return no_step_down(); }

std::optional<Error> ConditionalStore::accepts(const Timing&) { return std::nullopt; }

}  // namespace tenure
