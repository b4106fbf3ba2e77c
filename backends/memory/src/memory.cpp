// SPDX-License-Identifier: Apache-2.0
// Hubs, and the records and groups on them.
#include <concepts>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "group_tables.hpp"

namespace tenure::memory {

// ---- what a hub keeps behind one mutex, and the faults of real stores behind switches ----

/// One election's record.
struct Slot {
  std::optional<Record> record;
  std::optional<StepDown> step_down;
  const Clock* clock{};  ///< That `record->asked` was read from.

  std::optional<Version> version() const {
    if (!record) return std::nullopt;
    return Version{record->token, record->beat};
  }
};

struct TENURE_MEMORY_NO_EXPORT Hub::State {
  const Traits traits;
  std::mutex mutex;
  std::map<std::string, Slot> slots;          ///< Never erased from: whoever waits is known by the address.
  std::map<std::string, GroupTables> groups;  ///< The same.
  std::vector<std::function<void()>> held;
  std::list<std::pair<const void*, Waker*>> waiters;  ///< Each with the slot or the group that it waits for.
  Clock::Duration clock_error{};
  bool unreachable{}, hang{};
  std::size_t lose{}, hold{};
  std::uint64_t reconnects{};  ///< Whoever waited through an outage may have missed a push.

  explicit State(Traits t) : traits(t) {}

  std::int64_t now_ms(const Clock& clock) const {
    return clock.unix_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(clock_error).count();
  }

  void wake(const void* what) {
    if (!traits.push) return;
    for (const auto& [waits_for, waker] : waiters)
      if (waits_for == what) waker->wake();
  }

  void wake_all() {
    for (const auto& waiter : waiters) waiter.second->wake();
  }

  /// To a group that is there.
  template <std::invocable<GroupTables&> Do>
  void at(const std::string& group, Do what) {
    const std::lock_guard lock(mutex);
    if (const auto it = groups.find(group); it != groups.end()) what(it->second);
  }

  void recovered() {
    ++reconnects;
    wake_all();
  }

  std::optional<Error> outage(std::unique_lock<std::mutex>& lock, const Limit& limit) const {
    if (unreachable) return Error{Fault::unreachable, "memory: the hub is set to be unreachable"};
    if (hang) {
      lock.unlock();
      wait_out(limit);
      lock.lock();
      return Error{Fault::timed_out, "memory: the hub is set to hang"};
    }
    if (limit.passed()) return Error{Fault::timed_out, "memory: the limit had passed before the call"};
    return std::nullopt;
  }

  template <std::invocable Ask>
  Result<std::invoke_result_t<Ask>> read(const Limit& limit, Ask ask) {
    std::unique_lock lock(mutex);
    if (auto error = outage(lock, limit)) return *std::move(error);
    return ask();
  }

  /// Carries out `change`, unless a fault says otherwise. REQUIRES: `change` may be called as long as the hub lives.
  template <std::invocable Change>
  Result<std::invoke_result_t<Change>> write(const Limit& limit, Change change) {
    std::unique_lock lock(mutex);
    if (auto error = outage(lock, limit)) return *std::move(error);
    if (take(hold)) {
      held.emplace_back([change] { static_cast<void>(change()); });
      return Error{Fault::timed_out, "memory: the write is held back"};
    }
    auto done = change();
    if (take(lose)) return Error{Fault::timed_out, "memory: the answer is lost"};
    return done;
  }

  /// Sleeps until `changed`, until an outage was over, or until the limit. Then returns what `tell` says of it.
  template <std::predicate Changed, std::invocable Tell>
  std::invoke_result_t<Tell> await(const void* what, const Limit& limit, Changed changed, Tell tell) {
    const auto waker = limit.clock.make_waker();
    std::unique_lock lock(mutex);
    const auto place = waiters.emplace(waiters.end(), what, waker.get());
    const auto before = reconnects;
    const auto told = [&] { return reconnects != before || (traits.push && !unreachable && !hang && changed()); };
    while (!told() && !limit.passed()) {
      lock.unlock();
      tenure::wait(*waker, limit);
      lock.lock();
    }
    waiters.erase(place);
    return told() ? tell() : std::invoke_result_t<Tell>{};
  }

 private:
  static bool take(std::size_t& count) {
    if (count == 0) return false;
    --count;
    return true;
  }
};

// ---- hubs ----

Hub::Hub(Traits traits) : state_(std::make_shared<State>(traits)) {}

void Hub::unreachable(bool on) {
  const std::lock_guard lock(state_->mutex);
  state_->unreachable = on;
  if (!on) state_->recovered();
}

void Hub::hang(bool on) {
  const std::lock_guard lock(state_->mutex);
  state_->hang = on;
  if (!on) state_->recovered();
}

void Hub::lose_answers(std::size_t n) {
  const std::lock_guard lock(state_->mutex);
  state_->lose = n;
}

void Hub::hold_writes(std::size_t n) {
  const std::lock_guard lock(state_->mutex);
  state_->hold = n;
}

void Hub::deliver_held() {
  const std::lock_guard lock(state_->mutex);
  for (const auto& write : std::exchange(state_->held, {})) write();
}

void Hub::flush() {
  const std::lock_guard lock(state_->mutex);
  for (auto& entry : state_->slots) entry.second = {};
  for (auto& entry : state_->groups) entry.second.lose_everything();
  if (state_->traits.push) state_->wake_all();
}

void Hub::step_clock(Clock::Duration by) {
  const std::lock_guard lock(state_->mutex);
  state_->clock_error += by;
}

// ---- records and groups ----

namespace {

Read found(const Hub::State& hub, const Slot& slot, const Clock& clock) {
  return {.record = slot.record,
          .step_down = slot.step_down,
          .now_ms = hub.now_ms(clock),
          .same_clock = hub.traits.same_clock && slot.clock == &clock,
          .absence_certain = hub.traits.absence_certain};
}

class Store final : public ConditionalStore {
 public:
  Store(std::shared_ptr<Hub::State> hub, const std::string& election) : hub_(std::move(hub)), slot_(slot(election)) {}

  Result<Read> read(const Limit& limit) override {
    return hub_->read(limit, [&] { return found(*hub_, slot_, limit.clock); });
  }

  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    return hub_->write(limit, [&hub = *hub_, &slot = slot_, &clock = limit.clock, expected, next] {
      if (!matches(expected, slot.record)) return Swap{false, found(hub, slot, clock)};
      slot.record = next;
      slot.record->term = std::chrono::ceil<std::chrono::milliseconds>(next.term);
      slot.record->written_ms = hub.now_ms(clock);
      slot.clock = &clock;
      hub.wake(&slot);
      return Swap{true, found(hub, slot, clock)};
    });
  }

  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    return hub_->await(
        &slot_, limit, [&] { return slot_.version() != seen; },
        [&] { return slot_.record && slot_.record->released ? slot_.version() : std::nullopt; });
  }

  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override {
    const auto done = hub_->read(limit, [&] {
      if (slot_.record && slot_.record->token == request.token) slot_.step_down = request;
      return true;
    });
    return done ? std::nullopt : std::optional(done.error());
  }

 private:
  Slot& slot(const std::string& election) {
    check_election(election);
    const std::lock_guard lock(hub_->mutex);
    return hub_->slots[election];
  }

  const std::shared_ptr<Hub::State> hub_;
  Slot& slot_;
};

/// A group of elections: its tables, behind the mutex and the faults.
class Group final : public GroupStore {
 public:
  Group(std::shared_ptr<Hub::State> hub, std::string name)
      : hub_(std::move(hub)), name_(std::move(name)), tables_(tables()) {}

  std::string group() const override { return name_; }

  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    return hub_->read(limit, [&] { return tables_.look(cursor, hub_->now_ms(limit.clock)); });
  }

  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return write(limit, [=](GroupTables& tables, std::int64_t now_ms) { return tables.open(id, session, now_ms); });
  }

  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    if (auto error = refused_commit(commit)) return *std::move(error);
    return write(limit, [=](GroupTables& tables, std::int64_t now_ms) { return tables.commit(commit, now_ms); });
  }

  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return write(limit,
                 [=](GroupTables& tables, std::int64_t now_ms) { return tables.end(id, beats, new_beat, now_ms); });
  }

  Result<int> sweep(const Limit& limit) override {
    return write(limit, [](GroupTables& tables, std::int64_t) { return tables.sweep(); });
  }

  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit) override {
    if (auto error = refused_retirement(leads)) return *std::move(error);
    return write(limit, [=](GroupTables& tables, std::int64_t) { return tables.retire(leads); });
  }

  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    const auto stored =
        write(limit, [=](GroupTables& tables, std::int64_t) { return tables.request_step_down(election, request); });
    if (!stored) return stored.error();
    if (*stored) return std::nullopt;
    return Error{Fault::misconfigured, "memory: nobody has ever led \"" + printable(election, 40) +
                                           "\" in the group \"" + printable(name_, 40) +
                                           "\", so nobody can be asked to step down"};
  }

  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    return hub_->await(
        &tables_, limit, [&] { return tables_.happened_since(cursor); },
        [&] { return hub_->traits.push ? tables_.release_since(cursor) : std::nullopt; });
  }

 private:
  GroupTables& tables() {
    check_election(name_);
    const std::lock_guard lock(hub_->mutex);
    return hub_->groups.try_emplace(name_, !hub_->traits.absence_certain).first->second;
  }

  /// `change` may be carried out when this object is gone.
  template <class Change>
  Result<std::invoke_result_t<Change, GroupTables&, std::int64_t>> write(const Limit& limit, Change change) {
    return hub_->write(limit, [&hub = *hub_, &tables = tables_, &clock = limit.clock, change] {
      const auto events = tables.events();
      auto done = change(tables, hub.now_ms(clock));
      if (tables.events() != events) hub.wake(&tables);
      return done;
    });
  }

  const std::shared_ptr<Hub::State> hub_;
  const std::string name_;
  GroupTables& tables_;
};

}  // namespace

std::shared_ptr<ConditionalStore> Hub::store(const std::string& election) const {
  return std::make_shared<Store>(state_, election);
}

std::shared_ptr<GroupStore> Hub::group(const std::string& name) const { return std::make_shared<Group>(state_, name); }

void Hub::spoil_lead(const std::string& group, const std::string& election) {
  state_->at(group, [&](GroupTables& tables) { tables.spoil_lead(election); });
}

void Hub::mend_lead(const std::string& group, const std::string& election) {
  state_->at(group, [&](GroupTables& tables) { tables.mend_lead(election); });
}

void Hub::lose_session(const std::string& group, SessionId id) {
  state_->at(group, [&](GroupTables& tables) { tables.lose_session(id); });
}

std::shared_ptr<Backend> open(const Hub& hub, const std::string& election, Candidate candidate, Log log) {
  return lock_table(hub.store(election), election, std::move(candidate), std::move(log));
}

Hub hub(const std::string& name) {
  static std::mutex mutex;
  static auto& hubs = *new std::map<std::string, Hub>;  // never destroyed: it is used until the process ends
  const std::lock_guard lock(mutex);
  return hubs[name];
}

Presets presets() { return lock_table_presets(); }

namespace {

Hub hub_of(const Opening& opening) {
  const auto url = parse_url(opening);
  if (url.scheme != "memory" || !url.hosts.empty() || !url.user.empty() || !url.password.empty() || opening.credentials)
    throw std::invalid_argument(
        "memory: a URL is \"memory:\" or \"memory:name\", without host, user, password and credentials");
  url.expect_no_more();
  return hub(url.path);
}

}  // namespace

Opened open_url(const Opening& opening) {
  return {.backend = open(hub_of(opening), opening.election, opening.candidate, opening.log), .presets = presets()};
}

OpenedGroup open_group_url(const Opening& opening) {
  return {.store = hub_of(opening).group(opening.election), .presets = presets()};
}

}  // namespace tenure::memory
