// SPDX-License-Identifier: Apache-2.0
// A backend that answers what the test says, keeps a diary, and can hang.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/manual_clock.hpp>

#include "eventually.hpp"

namespace tenure::test {

class ScriptedBackend : public Backend {
 public:
  /// The test's clock. It is kept here because a thread in a wedged call outlives manager and test, and with it this.
  ManualClock clock;

  ~ScriptedBackend() override { let_go(); }

  Answer acquire(const Limit&) override {
    note("acquire");
    const std::lock_guard lock(mutex_);
    if (throwing_) throw std::runtime_error("no such host");
    if (refusing_) return Denied{Incumbent{"other", "i", "", {token_}, std::chrono::seconds(5)}};
    return Granted{Token{++token_}};
  }
  Answer renew(Token token, const Limit&) override {
    note("renew");
    const std::lock_guard lock(mutex_);
    if (refusing_) return Denied{};
    return Granted{token};
  }
  std::optional<Error> release(const Limit&) override {
    note("release");
    return std::nullopt;
  }
  Sight observe(const Limit&) override {
    note("observe");
    const std::lock_guard lock(mutex_);
    return sight_;
  }
  void await_change(const Sight&, const Limit& limit) override {
    note("await_change");
    const auto waker = limit.clock.make_waker();
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(pushed_, false)) return;
      waiting_ = waker.get();
    }
    wait(*waker, limit);
    const std::lock_guard lock(mutex_);
    waiting_ = nullptr;
    pushed_ = false;
  }
  std::string election() const override { return "scripted"; }
  std::optional<Error> accepts(const Timing& timing) override {
    if (timing.term > std::chrono::minutes(30)) return Error{Fault::misconfigured, "term: at most 30 minutes here"};
    return std::nullopt;
  }

  void hang() {
    set([this] { hanging_ = true; });
  }  ///< Every verb from now on, until let_go().
  void let_go() {
    set([this] { hanging_ = false; });
  }
  void refuse(bool on) {
    set([this, on] { refusing_ = on; });
  }
  void throwing(bool on) {
    set([this, on] { throwing_ = on; });
  }
  void see(Sight sight) {
    set_sight(std::move(sight));
    push();
  }
  void set_sight(Sight sight) {  ///< Without a push.
    set([this, &sight] { sight_ = std::move(sight); });
  }
  void push() {
    const std::lock_guard lock(mutex_);
    pushed_ = true;
    if (waiting_) waiting_->wake();
  }
  /// What happened so far, the test's own notes among it.
  std::vector<std::string> diary() const {
    const std::lock_guard lock(mutex_);
    return diary_;
  }
  /// Keeps one entry and hangs there if told to.
  void note(const std::string& what) {
    std::unique_lock lock(mutex_);
    diary_.push_back(what);
    changed_.notify_all();
    if (what != "elected" && what != "ousting") changed_.wait(lock, [this] { return !hanging_; });
  }
  /// Waits in real time, at most 30 s, until the diary has `n` entries of this.
  bool await(const std::string& what, long n = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return std::count(diary_.begin(), diary_.end(), what) >= n; });
  }

 private:
  template <class F>
  void set(F f) {
    const std::lock_guard lock(mutex_);
    f();
    changed_.notify_all();
  }
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> diary_;
  Waker* waiting_{};
  Sight sight_{Vacant{}};
  std::uint64_t token_{};
  bool hanging_{}, refusing_{}, throwing_{}, pushed_{};
};

}  // namespace tenure::test
