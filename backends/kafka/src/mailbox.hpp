// SPDX-License-Identifier: Apache-2.0
// How other threads reach the thread that serves a machine.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/wait.hpp>

#include "closable_log.hpp"

namespace tenure::kafka {

/// How others reach the thread that serves a machine: facts go in, and the answer to the one outstanding call comes
/// out.
template <class Fact, class Answer>
class Mailbox {
 public:
  /// Throws std::system_error if descriptors have run out.
  Mailbox() : serve_wakes_(boot_clock().make_waker()), caller_wakes_(boot_clock().make_waker()) {}

  /// The machine is there. What comes before waits for this.
  void open() { set(open_); }
  /// Nothing more is to be done.
  void close() { set(last_); }

  void post(Fact fact) {
    {
      const std::lock_guard lock(mutex_);
      facts_.push_back(std::move(fact));
    }
    serve_wakes_->wake();
  }

  /// One call at a time. `called(id, by)` and `abandoned(id)` make its facts. Nothing if the limit passed first.
  template <class Called, class Abandoned>
  std::optional<Answer> call(const Limit& limit, Called called, Abandoned abandoned) {
    const Limit own{boot_clock(), by_boot_clock(limit), limit.stop};
    std::uint64_t id{};
    {
      const std::lock_guard lock(mutex_);
      id = ++last_call_;
      answer_.reset();
      facts_.push_back(called(id, own.by));
    }
    serve_wakes_->wake();
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (answer_) return std::exchange(answer_, std::nullopt);
        if (own.passed()) {
          ++last_call_;  // nobody gets an answer that comes from here on
          facts_.push_back(abandoned(id));
          break;
        }
      }
      wait(*caller_wakes_, own);
    }
    serve_wakes_->wake();
    return std::nullopt;
  }

  // The serving thread

  /// What it does. Each but alarm() may throw: memory may have run out. Nobody knows the state of the handle then.
  struct Steps {
    std::function<void(const Fact&)> handle;
    std::function<void()> take_events;
    std::function<Clock::Time()> alarm;
    std::function<void(std::string why)> give_handle_up;
    Fact elapsed, closing;
  };

  /// Until it is closed.
  void serve(const Steps& steps, ClosableLog& log) {
    std::string lost;  // Why something may be lost of which the machine has not heard yet.
    bool well = true;
    const auto survive = [&](const auto& step) {
      if (auto why = thrown_by(log, step); !why.empty()) well = false, lost = std::move(why);
      if (!lost.empty() && thrown_by(log, [&] { steps.give_handle_up(lost); }).empty()) lost.clear();
    };
    for (;;) {
      auto [facts, open, last] = take();
      well = true;
      if (open) {
        for (const auto& fact : facts) survive([&] { steps.handle(fact); });
        if (last) survive([&] { steps.handle(steps.closing); });
        survive(steps.take_events);
        survive([&] { steps.handle(steps.elapsed); });
      }
      if (last) return;
      const auto at = open ? steps.alarm() : Clock::Time::max();
      serve_wakes_->wait_until(well && lost.empty() ? at : boot_clock().now() + std::chrono::milliseconds(100));
    }
  }

  void answer(std::uint64_t id, Answer answer) {
    {
      const std::lock_guard lock(mutex_);
      if (id != last_call_) return;  // the caller has left, and the machine will hear of it
      answer_ = std::move(answer);
    }
    caller_wakes_->wake();
  }

  /// Wakes the serving thread.
  const std::shared_ptr<Waker>& waker() const { return serve_wakes_; }

 private:
  struct Mail {
    std::vector<Fact> facts{};
    bool open{}, last{};
  };
  Mail take() {
    const std::lock_guard lock(mutex_);
    Mail out{.open = open_, .last = last_};
    if (open_) out.facts.swap(facts_);
    return out;
  }

  template <class Step>
  static std::string thrown_by(ClosableLog& log, const Step& step) {
    try {
      step();
      return {};
    } catch (const std::exception& e) {
      log.write(Level::error, e.what());
      return e.what();
    }
  }

  void set(bool& what) {
    {
      const std::lock_guard lock(mutex_);
      what = true;
    }
    serve_wakes_->wake();
  }

  std::mutex mutex_;
  std::vector<Fact> facts_;
  bool open_{}, last_{};
  std::uint64_t last_call_{};
  std::optional<Answer> answer_;  ///< of last_call_
  const std::shared_ptr<Waker> serve_wakes_, caller_wakes_;
};

}  // namespace tenure::kafka
