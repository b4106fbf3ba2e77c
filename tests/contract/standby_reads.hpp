// SPDX-License-Identifier: Apache-2.0
// How often a standby of a lock table reads while its leader does nothing but renew.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <tenure/leader_manager.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/wait.hpp>
#include <utility>
#include <variant>
#include <vector>

namespace tenure::contract {

/// Notes every read.
class WatchedReads final : public ConditionalStore {
 public:
  struct Look {
    Clock::Time began;
    Clock::Duration asked;  ///< when the holder asked for the record that it shows
    Clock::Duration late;   ///< from then to the answer
    std::int64_t age_ms;    ///< of the record, by the server's clock
  };
  explicit WatchedReads(std::shared_ptr<ConditionalStore> real) : real_(std::move(real)) {}

  Result<Read> read(const Limit& limit) override {
    const auto began = boot_clock().now();
    auto result = real_->read(limit);
    const auto* found = std::get_if<Read>(&result);
    EXPECT_TRUE(found && found->record);
    if (!found || !found->record) return result;
    const auto late = boot_clock().now().time_since_epoch() - found->record->asked;
    const std::lock_guard lock(mutex_);
    looks_.push_back({began, found->record->asked, late, found->now_ms - found->record->written_ms});
    return result;
  }
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    return real_->compare_and_set(expected, next, limit);
  }
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    return real_->await_change(seen, limit);
  }
  std::vector<Look> looks() const {
    const std::lock_guard lock(mutex_);
    return looks_;
  }

 private:
  const std::shared_ptr<ConditionalStore> real_;
  mutable std::mutex mutex_;
  std::vector<Look> looks_;
};

/// A look that follows a renewal closely leaves nothing to learn until the last renewal of that lease. After one that
/// came late, as on a busy host, up to eight more may follow soon, until one is in time. How many were in time.
inline int looks_in_time(const std::vector<WatchedReads::Look>& looks, const Timing& timing) {
  using std::chrono::microseconds, std::chrono::milliseconds;
  int judged = 0, hurried = 0;
  for (std::size_t i = 2; i < looks.size(); ++i) {  // the first wait subscribes and returns
    const auto& before = looks[i - 1];
    const auto pause = looks[i].began.time_since_epoch() - before.asked;
    const bool soon = pause < timing.term - timing.renew;
    if (before.late <= milliseconds(4)) {
      ++judged;
      EXPECT_FALSE(soon) << pause / milliseconds(1) << " ms after a look " << before.late / microseconds(1)
                         << " us late";
    }
    // It takes the leader for that much later.
    const bool held_up = before.late > before.age_ms * milliseconds(1) + milliseconds(100);
    hurried = before.age_ms <= 5 ? 0 : hurried + (soon && !held_up);
    EXPECT_LE(hurried, 8);
  }
  return judged;
}

/// The seat's token, once it leads.
inline std::optional<Token> lead(Backend& seat, const Timing& timing) {
  using std::chrono::seconds;
  EXPECT_EQ(seat.accepts(timing), std::nullopt);
  for (const Limit all{boot_clock(), boot_clock().now() + seconds(10), {}}; !all.passed();) {
    const auto answer = seat.acquire({boot_clock(), boot_clock().now() + timing.call, {}});
    if (const auto* granted = std::get_if<Granted>(&answer)) return granted->token;
    wait_out({boot_clock(), boot_clock().now() + timing.retry, {}});
  }
  return std::nullopt;
}

struct Quiet {
  long renewals;
  long reads;
};

/// `leader` holds `token` and renews by the clock, and a standby watches, until three of its looks were in time. On a
/// machine so busy that few of thirty are, the bound of the others and the count at the server are judged alone.
inline Quiet watch_a_standby(Backend& leader, Token token, std::shared_ptr<ConditionalStore> watched,
                             const Timing& timing) {
  const auto reads = std::make_shared<WatchedReads>(std::move(watched));
  LeaderManager standby(lock_table(reads, "jobs", {"standby", ""}), timing, {});
  standby.start();
  const auto seen_enough = [&] {
    const auto looks = reads->looks();
    return looks_in_time(looks, timing) >= 3 || looks.size() >= 30 || testing::Test::HasFailure();
  };
  const auto waker = boot_clock().make_waker();
  const auto began = boot_clock().now();
  long renewals = 0;
  while (!seen_enough() && boot_clock().now() < began + std::chrono::seconds(40)) {
    const auto answer = leader.renew(token, {boot_clock(), boot_clock().now() + timing.call, {}});
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    waker->wait_until(began + ++renewals * timing.renew);
  }
  standby.stop();
  EXPECT_TRUE(seen_enough()) << reads->looks().size() << " looks";
  return {renewals, static_cast<long>(reads->looks().size())};
}

}  // namespace tenure::contract
