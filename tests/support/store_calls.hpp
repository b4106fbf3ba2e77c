// SPDX-License-Identifier: Apache-2.0
// Records to write, and answers of a ConditionalStore taken apart.
#pragma once
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include <tenure/conditional_store.hpp>

#include "lateness.hpp"
#include "within.hpp"

namespace tenure::test {

/// Asked for just now.
inline Record record(std::uint64_t token, std::uint64_t beat, Clock::Duration term = std::chrono::seconds(10),
                     Clock& clock = boot_clock()) {
  Record made;
  made.token = {token};
  made.beat = beat;
  made.who = "name=holder;address=address;incarnation=incarnation";
  made.term = term;
  made.asked = clock.now().time_since_epoch();
  return made;
}

inline Record released(Record made) {
  made.released = true;
  return made;
}

/// The answer, or a failed test with the error, which ends there: it has nothing to go on with.
template <class T>
T value(Result<T> result) {
  if (!result) {
    if (result.error().fault == Fault::timed_out || result.error().fault == Fault::unreachable) excuse_if_busy();
    ADD_FAILURE() << to_string(result.error().fault) << ": " << result.error().message;
    throw std::runtime_error("no answer");
  }
  return *std::move(result);
}

template <class T>
Error error_of(const Result<T>& result) {
  if (!result) return result.error();
  ADD_FAILURE() << "an error was expected";
  return {};
}

/// That no busy machine is the reason.
inline constexpr auto long_enough = std::chrono::seconds(30);

inline Read read(ConditionalStore& store, Clock& clock = boot_clock()) {
  return value(store.read(within(long_enough, clock)));
}
inline bool swap(ConditionalStore& store, const std::optional<Expected>& expected, const Record& next,
                 Clock& clock = boot_clock()) {
  return value(store.compare_and_set(expected, next, within(long_enough, clock))).applied;
}

/// Of a store that may try until the limit.
inline Error refused_read(ConditionalStore& store) { return error_of(store.read(within(std::chrono::seconds(2)))); }
inline Error refused_swap(ConditionalStore& store, const std::optional<Expected>& expected, const Record& next) {
  return error_of(store.compare_and_set(expected, next, within(std::chrono::seconds(2))));
}

}  // namespace tenure::test
