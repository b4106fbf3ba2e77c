// SPDX-License-Identifier: Apache-2.0
#include <tenure/observer.hpp>

#include <stdexcept>
#include <thread>
#include <utility>

#include <tenure/kit/start_thread.hpp>

#include "candidacy.hpp"
#include "waiters.hpp"

namespace tenure {
namespace {

/// The same to tell? What remains of a lease is no news.
bool same(const Sight& a, const Sight& b) {
  if (a.index() != b.index()) return false;
  const auto* x = std::get_if<Incumbent>(&a);
  const auto* y = std::get_if<Incumbent>(&b);
  return !x || (x->token == y->token && x->incarnation == y->incarnation);
}

}  // namespace

class Observer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<Backend> seat, const Timing& timing, Changed changed, Clock& clock)
      : waiters(clock), seat_(std::move(seat)), timing_(timing), changed_(std::move(changed)), clock_(clock) {
    if (!seat_) throw std::invalid_argument("Observer: seat is null");
    timing_.validate();
    if (const auto refused = seat_->accepts(timing_)) throw std::invalid_argument("Timing: " + refused->message);
  }

  void start() {
    thread_ = start_thread("tenure-observe", [self = shared_from_this()] { self->loop(); });
  }

  void stop() {
    stop_.request_stop();
    waiters.wake();
    const auto patience = timing_.call + Candidacy::overrun_grace;
    if (waiters.await(patience, {}, [this] { return ended_.load(); }))
      thread_.join();
    else
      thread_.detach();  // inside a store call that ignores its limit; it owns what it needs
  }

  std::optional<Incumbent> incumbent() const {
    const std::lock_guard lock(mutex_);
    const auto* who = std::get_if<Incumbent>(&sight_);
    const auto left = until_ - clock_.now();
    if (!who || left <= Clock::Duration::zero()) return std::nullopt;
    auto copy = *who;
    copy.remaining = left;
    return copy;
  }

  bool stopping() const { return stop_.stop_requested(); }

  Waiters waiters;

 private:
  void loop() {
    auto pause_from = clock_.now();
    for (int looks = 0; !stopping(); ++looks) {
      const auto sight = look();
      if (stopping()) break;  // perhaps long after: nothing of the caller's is touched any more
      note(sight);
      if (std::holds_alternative<Unknown>(sight))
        wait_out({clock_, clock_.now() + timing_.retry, stop_.get_token()});
      else
        await_change(sight);
      if (clock_.now() >= pause_from + timing_.retry) {
        pause_from = clock_.now();
        looks = 0;
      } else if (looks >= prompt_looks) {  // woken for nothing too often
        wait_out({clock_, pause_from + timing_.retry, stop_.get_token()});
      }
    }
    ended_ = true;
    waiters.changed();
  }

  Sight look() {
    try {
      return seat_->observe({clock_, clock_.now() + timing_.call, stop_.get_token()});
    } catch (const std::exception& e) {
      return Unknown{{Fault::unreachable, std::string("the backend threw: ") + e.what()}};
    }
  }

  void await_change(const Sight& sight) {
    const Limit limit{clock_, clock_.now() + timing_.term, stop_.get_token()};
    try {
      seat_->await_change(sight, limit);
    } catch (const std::exception&) {
      wait_out(limit);  // the next look tells what is wrong
    }
  }

  void note(const Sight& sight) {
    bool news = false;
    {
      const std::lock_guard lock(mutex_);
      news = !seen_once_ || !same(sight_, sight);
      seen_once_ = true;
      sight_ = sight;
      if (const auto* who = std::get_if<Incumbent>(&sight)) until_ = clock_.now() + who->remaining;
    }
    if (!news) return;
    waiters.changed();
    if (changed_) changed_(sight);
  }

  static constexpr int prompt_looks = 8;

  const std::shared_ptr<Backend> seat_;
  const Timing timing_;
  const Changed changed_;
  Clock& clock_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  Sight sight_;
  Clock::Time until_{};
  bool seen_once_{};
  std::atomic<bool> ended_{};
  std::thread thread_;
};

Observer::Observer(std::shared_ptr<Backend> seat, const Timing& timing, Changed changed, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(seat), timing, std::move(changed), clock)) {
  impl_->start();
}

Observer::~Observer() { impl_->stop(); }

std::optional<Incumbent> Observer::incumbent() const { return impl_->incumbent(); }

std::uint64_t Observer::changes() const { return impl_->waiters.changes(); }

std::uint64_t Observer::await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop) {
  impl_->waiters.await(within, stop, [&] { return changes() != seen || impl_->stopping(); });
  return changes();
}

}  // namespace tenure
