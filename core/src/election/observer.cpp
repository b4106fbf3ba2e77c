// SPDX-License-Identifier: Apache-2.0
// The thread of an observer: it looks, waits for a change, and tells.
#include <tenure/observer.hpp>

#include <mutex>
#include <stdexcept>
#include <utility>

#include "election/watching.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

/// Whether both tell the same. The rest of a lease is no news.
bool same(const Sight& a, const Sight& b) {
  if (a.index() != b.index()) return false;
  const auto* x = std::get_if<Incumbent>(&a);
  const auto* y = std::get_if<Incumbent>(&b);
  return !x || (x->token == y->token && x->incarnation == y->incarnation);
}

std::shared_ptr<Backend> observable(std::shared_ptr<Backend> backend, const Timing& timing) {
  if (!backend) throw std::invalid_argument("Observer: backend is null");
  timing.validate();
  if (const auto refused = backend->accepts(timing)) throw std::invalid_argument("Timing: " + refused->message);
  return backend;
}

}  // namespace

class TENURE_NO_EXPORT Observer::Impl final : public Watching {
 public:
  Impl(std::shared_ptr<Backend> backend, const Timing& timing, Changed changed, Clock& clock)
      : Watching(timing, clock, {}, "election", [backend] { return backend->election(); }),
        backend_(observable(std::move(backend), timing)),
        changed_(std::move(changed)) {}

  std::optional<Incumbent> incumbent() const {
    if (forked()) return std::nullopt;  // before the lock: it may have been held when we were forked
    const std::lock_guard lock(mutex_);
    const auto* who = std::get_if<Incumbent>(&answered_);
    const auto left = until_ - clock_.now();
    if (!who || left <= Clock::Duration::zero()) return std::nullopt;
    auto copy = *who;
    copy.remaining = left;
    return copy;
  }

 private:
  bool look() override {
    auto sight = asked_store();
    if (stopping()) return false;  // Perhaps long after: nothing of the caller's is touched any more.
    note(sight);
    return !std::holds_alternative<Unknown>(sight);
  }

  /// An incumbent whose lease is over leads no more.
  Sight asked_store() {
    try {
      auto sight = backend_->observe({clock_, clock_.now() + timing_.call, stop_token()});
      const auto* who = std::get_if<Incumbent>(&sight);
      if (who && who->remaining <= Clock::Duration::zero()) return Vacant{};
      return sight;
    } catch (...) {
      return Unknown{{Fault::unreachable, "the backend threw: " + what_was_thrown()}};
    }
  }

  /// At most until the lease ends: the next look then tells whether it was renewed. A store that cannot be waited for
  /// is asked as often as a leader would ask it.
  void await_news() override {
    const auto now = clock_.now();
    const auto& sight = *sight_;
    const auto end = std::holds_alternative<Incumbent>(sight) ? until_ : Clock::Time::max();
    try {
      backend_->await_change(sight, {clock_, std::min(now + timing_.term, end), stop_token()});
    } catch (...) {
      pause(std::min<Clock::Duration>(timing_.renew, end - now));
    }
  }

  void note(const Sight& sight) {
    bool news = false, change = false;
    {
      const std::lock_guard lock(mutex_);
      news = !sight_ || !same(*sight_, sight);
      sight_ = sight;
      change = remember(sight);
    }
    if (change) changed();
    if (!news) return;
    if (changed_) return call([&] { changed_(sight); });
    if (const auto* unknown = std::get_if<Unknown>(&sight)) report(unknown->error);
  }

  /// The lease that was seen has ended, and the store does not answer.
  void judge_ends() override {
    {
      const std::lock_guard lock(mutex_);
      if (!std::holds_alternative<Incumbent>(answered_) || clock_.now() < until_) return;
      answered_ = Vacant{};
    }
    changed();
    if (changed_) call([&] { changed_(Vacant{}); });
  }

  /// Whether another one leads, or nobody. A store that does not answer says nothing of that. REQUIRES: mutex_ is held.
  bool remember(const Sight& sight) {
    if (std::holds_alternative<Unknown>(sight)) return false;
    if (const auto* who = std::get_if<Incumbent>(&sight)) until_ = clock_.now() + std::min(who->remaining, max_term);
    return !same(std::exchange(answered_, sight), sight);
  }

  const std::shared_ptr<Backend> backend_;
  const Changed changed_;
  mutable std::mutex mutex_;
  std::optional<Sight> sight_;  ///< The last one. Its own thread's alone.
  Sight answered_;              ///< The last one that the store answered. Unknown: it never did.
  Clock::Time until_{};         ///< When the lease of that incumbent ends.
};

Observer::Observer(std::shared_ptr<Backend> backend, const Timing& timing, Changed changed, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(backend), timing, std::move(changed), clock)) {
  impl_->start("tenure-observe");
}

Observer::~Observer() { Watching::end(std::move(impl_), "an Observer"); }

std::optional<Incumbent> Observer::incumbent() const { return impl_->incumbent(); }

std::uint64_t Observer::changes() const { return impl_->changes(); }

std::uint64_t Observer::await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop) {
  return impl_->await_change(seen, within, stop);
}

}  // namespace tenure
