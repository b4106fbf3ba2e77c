// SPDX-License-Identifier: Apache-2.0
// Whatever a server does, a call ends by its limit and tells no secret.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <tenure/conditional_store.hpp>

#include "eventually.hpp"
#include "messages.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::test {

/// What core calls wedged.
inline constexpr auto wedged = std::chrono::milliseconds(50);

/// The call is back by its limit. A busy machine wakes somebody late too, but not as often as that in a row.
inline void expect_in_time(const char* verb, Clock::Duration time, const std::function<void(const Limit&)>& call) {
  auto late = Clock::Duration::max();
  for (int tries = 0; tries < 20 && late >= wedged; ++tries) {
    const auto limit = within(time);
    call(limit);
    late = boot_clock().now() - limit.by;
  }
  EXPECT_LT(late, wedged) << verb;
}

/// Does it for each of these, some at a time, since most of it waits.
template <class Items, class Do>
void for_each_at_once(const Items& items, Do does) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      for (std::size_t n; (n = next++) < items.size();) does(items[n]);
    });
}

/// Nothing of it is a secret.
inline void refused(const std::optional<Error>& error) {
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message.find(canary), error->message.npos) << error->message;
  EXPECT_EQ(error->message.find('\n'), error->message.npos) << error->message;
}

/// A connection that broke may be noticed by a call that fails at once. None has to wait until its limit.
inline bool reads_before_it_times_out(ConditionalStore& store, Clock::Duration time) {
  bool timed_out = false;
  return eventually([&] {
           const auto read = store.read(within(time));
           timed_out = timed_out || (!read && read.error().fault == Fault::timed_out);
           return read || timed_out;
         }) &&
         !timed_out;
}

/// Every verb, whatever the server answers.
inline void expect_error_in_time(ConditionalStore& store, Clock::Duration time) {
  const auto timed = [time](const char* verb, const std::function<void(const Limit&)>& call) {
    expect_in_time(verb, time, call);
  };
  timed("read", [&](const Limit& limit) { refused(error_of(store.read(limit))); });
  timed("swap",
        [&](const Limit& limit) { refused(error_of(store.compare_and_set(std::nullopt, record(1, 11), limit))); });
  timed("request_step_down", [&](const Limit& limit) { refused(store.request_step_down({{1}, "ops", "why"}, limit)); });
  timed("await_change", [&](const Limit& limit) { store.await_change(Version{{1}, 11}, limit); });
}

}  // namespace tenure::test
