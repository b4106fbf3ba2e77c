// SPDX-License-Identifier: Apache-2.0
// A candidate that a test drives verb by verb, and how late this machine is. Tools of contract_suite.hpp.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/kit/wait.hpp>
#include <thread>
#include <utility>
#include <variant>

namespace tenure::contract {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// A candidate under test: a backend, called as a manager calls it.
class Player {
 public:
  Player(std::shared_ptr<Backend> backend, const Timing& timing, Clock::Duration look_again)
      : backend_(std::move(backend)), timing_(timing), look_again_(look_again) {
    if (const auto error = backend_->accepts(timing_)) throw std::invalid_argument(error->message);
  }

  static Limit within(Clock::Duration d, std::stop_token stop = {}) {
    return {boot_clock(), boot_clock().now() + d, std::move(stop)};
  }
  Limit call() const { return within(timing_.call); }

  Answer acquire() { return backend_->acquire(call()); }
  Answer renew(Token token) { return backend_->renew(token, call()); }
  /// Repeats it until the store answers, as a manager would.
  std::optional<Error> release(Clock::Duration patience = seconds(30)) {
    for (const auto all = within(patience);; wait_out(within(timing_.retry)))
      if (auto error = backend_->release(call()); !error || all.passed()) return error;
  }

  /// Asks until the store says who leads.
  Sight observe(Clock::Duration patience) {
    for (const auto all = within(patience);; wait_out(within(timing_.retry))) {
      auto sight = backend_->observe(call());
      if (const auto* unknown = std::get_if<Unknown>(&sight); !unknown || all.passed()) {
        if (unknown) ADD_FAILURE() << "nobody could say who leads: " << unknown->error.message;
        return sight;
      }
    }
  }
  Backend& backend() { return *backend_; }
  std::shared_ptr<Backend> give_up_backend() { return std::move(backend_); }

  /// Asks until the store says so, or denies it. A busy machine lets a call time out.
  bool renewed(Token token, Clock::Duration patience = seconds(30)) {
    auto answer = renew(token);
    for (const auto all = within(patience); std::holds_alternative<Unknown>(answer) && !all.passed();) {
      wait_out(within(timing_.retry));
      answer = renew(token);
    }
    return std::holds_alternative<Granted>(answer) && std::get<Granted>(answer).token == token;
  }

  /// Campaigns as a manager does. None if it does not lead within that time.
  std::optional<Token> campaign(Clock::Duration patience, std::stop_token stop = {}) {
    const auto all = within(patience, std::move(stop));
    while (!all.passed()) {
      const auto answer = acquire();
      if (const auto* granted = std::get_if<Granted>(&answer)) return granted->token;
      if (const auto* denied = std::get_if<Denied>(&answer)) {
        const auto seen = denied->holder ? Sight(*denied->holder) : Sight(Vacant{});
        backend_->await_change(seen, {all.clock, std::min(all.by, all.clock.now() + look_again_), all.stop});
      } else {
        wait_out({all.clock, std::min(all.by, all.clock.now() + timing_.retry), all.stop});
      }
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<Backend> backend_;
  Timing timing_;
  Clock::Duration look_again_;
};

/// Writes a released record, so that no candidate waits for a term on an absent one. False if the store does not
/// answer.
inline bool leave_a_released_record(ConditionalStore& store) {
  Record released;
  released.token = {1}, released.released = true, released.term = milliseconds(1);
  return bool(store.compare_and_set(std::nullopt, released, Player::within(seconds(30))));
}

/// Measures how late this machine wakes a sleeping thread. A bound on the time of a call must allow for that.
class Lateness {
 public:
  /// Until now. A sleeper that is still late counts too: where all stood still, the caller may be awake before it.
  Clock::Duration most(Clock::Time now) const {
    return std::max(Clock::Duration(most_.load()), now - Clock::Time(Clock::Duration(due_.load())));
  }

 private:
  std::atomic<Clock::Duration::rep> most_{0}, due_{boot_clock().now().time_since_epoch().count()};
  std::jthread sleeper_{[this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto limit = Player::within(milliseconds(5));
      due_ = limit.by.time_since_epoch().count();
      wait_out(limit);
      most_ = std::max(most_.load(), (boot_clock().now() - limit.by).count());
    }
  }};
};

}  // namespace tenure::contract
