// SPDX-License-Identifier: Apache-2.0
// Watches the elections of a group on a thread of its own.
#include <tenure/group_observer.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>

#include "election/watching.hpp"
#include "group/group_sights.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

std::shared_ptr<GroupStore> readable(std::shared_ptr<GroupStore> store, const Timing& timing,
                                     const GroupObserverOptions& options) {
  if (!store) throw std::invalid_argument("GroupObserver: store is null");
  timing.validate();
  for (const auto& election : options.elections) check_election(election);
  if (store->allots() && options.elections.empty())
    throw std::invalid_argument("GroupObserver: the store of \"" + printable(store->group(), 80) +
                                "\" keeps no names of elections, so that it cannot list them; name those to be "
                                "watched in GroupObserverOptions::elections");
  if (const auto refused = store->accepts(timing)) throw std::invalid_argument("Timing: " + refused->message);
  for (const auto& election : options.elections) store->joined(election);
  return store;
}

}  // namespace

class TENURE_NO_EXPORT GroupObserver::Impl final : public Watching {
 public:
  Impl(std::shared_ptr<GroupStore> store, const Timing& timing, GroupObserverOptions options, Clock& clock)
      : Watching(timing, clock, options.log, "group", [store] { return store->group(); }),
        store_(readable(std::move(store), timing, options)),
        options_(std::move(options)),
        sights_(store_->exclusive(), options_.elections) {}

  std::string group() const { return store_->group(); }

  std::optional<Incumbent> incumbent(const std::string& election) const {
    if (forked()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto sight = sights_.sight(election, clock_.now());
    const auto* who = std::get_if<Incumbent>(&sight);
    return who ? std::optional(*who) : std::nullopt;
  }

  std::vector<ObservedElection> all() const {
    if (forked()) return {};
    const std::lock_guard lock(mutex_);
    return sights_.all(clock_.now());
  }

  std::optional<Error> last_error() const {
    if (forked()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  bool look() override {
    const auto asked = clock_.now();
    const auto cursor = next_cursor(asked);
    const auto answer = asked_store(cursor, asked + patience_);
    if (stopping()) return false;
    patience_ =
        answer ? timing_.call : std::min<Clock::Duration>(2 * patience_, std::max(timing_.call, timing_.term / 2));
    std::vector<GroupSights::Change> changes;
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      error_ = answer ? std::nullopt : std::optional(answer.error());
      if (answer) changes = sights_.saw(*answer, asked, clock_.now());
      if (answer) first = !std::exchange(answered_, true);
    }
    if (first && changes.empty()) changed();
    if (!answer) report(answer.error());
    tell_all(changes);
    return bool(answer);
  }

  /// What others wrote is told as a change only if they say so. So as long as there is something that cannot be read,
  /// everything is looked at anew, twice a term.
  std::string next_cursor(Clock::Time now) {
    const std::lock_guard lock(mutex_);
    if (!sights_.any_unreadable() || now < whole_at_) return sights_.cursor();
    whole_at_ = now + timing_.term / 2;
    return {};
  }

  Result<Look> asked_store(const std::string& cursor, Clock::Time until) {
    try {
      return store_->look(cursor, {clock_, until, stop_token()});
    } catch (...) {
      return Error{Fault::unreachable, "the store threw: " + what_was_thrown()};
    }
  }

  /// Renewals are not pushed, so that they are looked for as often as they come.
  void await_news() override {
    const auto now = clock_.now();
    std::string cursor;
    Clock::Time end;
    {
      const std::lock_guard lock(mutex_);
      cursor = sights_.cursor();
      end = std::min(now + timing_.renew, sights_.next_end());
    }
    try {
      (void)store_->await_change(cursor, {clock_, end, stop_token()});
    } catch (...) {
      pause(end - now);
    }
  }

  void judge_ends() override {
    std::vector<GroupSights::Change> changes;
    {
      const std::lock_guard lock(mutex_);
      changes = sights_.lapsed(clock_.now());
    }
    tell_all(changes);
  }

  void tell_all(const std::vector<GroupSights::Change>& changes) {
    if (!changes.empty()) changed();
    for (const auto& [election, sight] : changes) {
      if (stopping()) return;
      if (const auto* unknown = std::get_if<Unknown>(&sight))
        report({unknown->error.fault,
                "the election " + printable(election, 80) + " cannot be read: " + unknown->error.message});
      if (options_.changed) call([&, &name = election, &now = sight] { options_.changed(name, now); });
    }
  }

  const std::shared_ptr<GroupStore> store_;
  const GroupObserverOptions options_;
  mutable std::mutex mutex_;  ///< It is never held while the store or the user runs.
  GroupSights sights_;
  std::optional<Error> error_;
  bool answered_{};
  Clock::Time whole_at_{};  ///< Its own thread's, as the next one is.

  /// How long the next look may take. All leads of a large group take longer than Timing::call, and who gives up too
  /// soon would ask for ever.
  Clock::Duration patience_ = timing_.call;
};

GroupObserver::GroupObserver(std::shared_ptr<GroupStore> store, const Timing& timing, GroupObserverOptions options,
                             Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(store), timing, std::move(options), clock)) {
  impl_->start("tenure-observe");
}

GroupObserver::~GroupObserver() { Watching::end(std::move(impl_), "a GroupObserver"); }

std::optional<Incumbent> GroupObserver::incumbent(const std::string& election) const {
  return impl_->incumbent(election);
}

std::vector<ObservedElection> GroupObserver::all() const { return impl_->all(); }

std::optional<Error> GroupObserver::last_error() const { return impl_->last_error(); }

Clock::Duration GroupObserver::telling() const { return impl_->telling(); }

std::uint64_t GroupObserver::changes() const { return impl_->changes(); }

std::uint64_t GroupObserver::await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop) {
  return impl_->await_change(seen, within, stop);
}

std::string GroupObserver::group() const { return impl_->group(); }

}  // namespace tenure
