// SPDX-License-Identifier: Apache-2.0
// A follower of a lock table reads seldom while its leader does nothing but renew.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/lock_table.hpp>
#include <utility>
#include <variant>

namespace tenure::contract {

/// Counts every read.
class CountedReads final : public ConditionalStore {
 public:
  explicit CountedReads(std::shared_ptr<ConditionalStore> real) : real_(std::move(real)) {}

  Result<Read> read(const Limit& limit) override {
    ++reads_;
    return real_->read(limit);
  }
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    return real_->compare_and_set(expected, next, limit);
  }
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    return real_->await_change(seen, limit);
  }
  std::optional<Error> accepts(const Timing& timing) override { return real_->accepts(timing); }
  long reads() const { return reads_; }

 private:
  const std::shared_ptr<ConditionalStore> real_;
  std::atomic<long> reads_{0};
};

/// No lease with this timing ends during a test.
inline constexpr Timing quiet_timing{.term = std::chrono::seconds(30),
                                     .renew = std::chrono::milliseconds(50),
                                     .retry = std::chrono::milliseconds(50),
                                     .margin = std::chrono::seconds(1),
                                     .call = std::chrono::seconds(10),
                                     .drain = std::chrono::seconds(1)};

/// Campaigns by the backend, and returns the token of its tenure.
inline std::optional<Token> lead(Backend& backend, const Timing& timing) {
  using std::chrono::seconds;
  EXPECT_EQ(backend.accepts(timing), std::nullopt);
  for (const Limit all{boot_clock(), boot_clock().now() + 2 * timing.term, {}}; !all.passed();) {
    const auto answer = backend.acquire({boot_clock(), boot_clock().now() + timing.call, {}});
    if (const auto* granted = std::get_if<Granted>(&answer)) return granted->token;
    wait_out({boot_clock(), boot_clock().now() + timing.retry, {}});
  }
  return std::nullopt;
}

struct Quiet {
  long renewals;
  long reads;
};

/// `leader` holds `token` and renews, and a follower watches from its first read on. It may read up to eight times to
/// learn when the lease ends (lock_table_decisions_test has that rule), and then no more until just before the end. So
/// this finds a store that wakes a follower with every renewal.
inline Quiet watch_a_follower(Backend& leader, Token token, std::shared_ptr<ConditionalStore> watched) {
  const auto counted = std::make_shared<CountedReads>(std::move(watched));
  LeaderManager follower(lock_table(counted, "jobs", {"follower", ""}), quiet_timing, {});
  follower.start();
  const auto waker = boot_clock().make_waker();
  const auto patience = boot_clock().now() + std::chrono::seconds(60);
  long renewals = 0;
  for (long watched_renewals = 0; watched_renewals < 40 && boot_clock().now() < patience; ++renewals) {
    const auto answer = leader.renew(token, {boot_clock(), boot_clock().now() + quiet_timing.call, {}});
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    watched_renewals += counted->reads() > 0;
    waker->wait_until(boot_clock().now() + quiet_timing.renew);
  }
  follower.stop();
  EXPECT_GT(counted->reads(), 0);
  EXPECT_LE(counted->reads(), 12);
  return {renewals, counted->reads()};
}

}  // namespace tenure::contract
