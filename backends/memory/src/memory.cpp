// SPDX-License-Identifier: Apache-2.0
// Records behind one mutex, and the faults of real stores behind switches.
#include <list>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tenure/kit/names.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>
#include <utility>
#include <vector>

namespace tenure::memory {

struct Hub::State {
  struct Slot {
    std::optional<Record> record;
    std::optional<StepDown> step_down;
    const Clock* clock{};  ///< The clock from which `record->asked` was read.

    std::optional<Version> version() const {
      if (!record) return std::nullopt;
      return Version{record->token, record->beat};
    }
  };
  struct Write {
    std::string election;
    std::optional<Expected> expected;
    Record next;
    Clock& clock;
  };

  const Traits traits;
  std::mutex mutex;
  std::map<std::string, Slot> slots;
  std::vector<Write> held;
  std::list<std::pair<std::string, Waker*>> waiters;
  Clock::Duration clock_error{};
  bool unreachable{}, hang{};
  std::size_t lose{}, hold{};
  std::uint64_t reconnects{};  ///< A follower that waited through an outage may have missed a push.

  explicit State(Traits t) : traits(t) {}

  std::int64_t now_ms(const Clock& clock) const {
    return clock.unix_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(clock_error).count();
  }

  Read found(const Slot& slot, const Clock& clock) const {
    return {.record = slot.record,
            .step_down = slot.step_down,
            .now_ms = now_ms(clock),
            .same_clock = traits.same_clock && slot.clock == &clock,
            .absence_certain = traits.absence_certain};
  }

  bool apply(const Write& write) {
    auto& slot = slots[write.election];
    if (!matches(write.expected, slot.record)) return false;
    slot.record = write.next;
    slot.record->term = std::chrono::ceil<std::chrono::milliseconds>(write.next.term);
    slot.record->written_ms = now_ms(write.clock);
    slot.clock = &write.clock;
    if (traits.push) wake(write.election);
    return true;
  }

  void wake(const std::string& election) {
    for (const auto& [name, waker] : waiters)
      if (name == election) waker->wake();
  }

  void wake_all() {
    for (const auto& waiter : waiters) waiter.second->wake();
  }

  void recovered() {
    ++reconnects;
    wake_all();
  }
};

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
  for (const auto& write : std::exchange(state_->held, {})) state_->apply(write);
}

void Hub::flush() {
  const std::lock_guard lock(state_->mutex);
  state_->slots.clear();
  if (state_->traits.push) state_->wake_all();
}

void Hub::step_clock(Clock::Duration by) {
  const std::lock_guard lock(state_->mutex);
  state_->clock_error += by;
}

namespace {

class Store final : public ConditionalStore {
 public:
  Store(std::shared_ptr<Hub::State> hub, std::string election) : hub_(std::move(hub)), election_(std::move(election)) {
    check_election(election_);
  }

  Result<Read> read(const Limit& limit) override {
    std::unique_lock lock(hub_->mutex);
    if (auto error = outage(lock, limit)) return *error;
    return hub_->found(hub_->slots[election_], limit.clock);
  }

  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    std::unique_lock lock(hub_->mutex);
    if (auto error = outage(lock, limit)) return *error;
    const Hub::State::Write write{election_, expected, next, limit.clock};
    if (take(hub_->hold)) {
      hub_->held.push_back(write);
      return Error{Fault::timed_out, "memory: the write is held back"};
    }
    const bool applied = hub_->apply(write);
    if (take(hub_->lose)) return Error{Fault::timed_out, "memory: the answer is lost"};
    return Swap{applied, hub_->found(hub_->slots[election_], limit.clock)};
  }

  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    const auto waker = limit.clock.make_waker();
    std::unique_lock lock(hub_->mutex);
    const auto place = hub_->waiters.emplace(hub_->waiters.end(), election_, waker.get());
    const auto reconnects = hub_->reconnects;
    const auto told = [&] {
      if (hub_->reconnects != reconnects) return true;
      return hub_->traits.push && !hub_->unreachable && !hub_->hang && hub_->slots[election_].version() != seen;
    };
    while (!told() && !limit.passed()) {
      lock.unlock();
      wait(*waker, limit);
      lock.lock();
    }
    hub_->waiters.erase(place);
    const auto& slot = hub_->slots[election_];
    return told() && slot.record && slot.record->released ? slot.version() : std::nullopt;
  }

  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override {
    std::unique_lock lock(hub_->mutex);
    if (auto error = outage(lock, limit)) return error;
    auto& slot = hub_->slots[election_];
    if (slot.record && slot.record->token == request.token) slot.step_down = request;
    return std::nullopt;
  }

 private:
  static bool take(std::size_t& count) {
    if (count == 0) return false;
    --count;
    return true;
  }

  std::optional<Error> outage(std::unique_lock<std::mutex>& lock, const Limit& limit) const {
    if (hub_->unreachable) return Error{Fault::unreachable, "memory: the hub is set to be unreachable"};
    if (hub_->hang) {
      lock.unlock();
      wait_out(limit);
      lock.lock();
      return Error{Fault::timed_out, "memory: the hub is set to hang"};
    }
    if (limit.passed()) return Error{Fault::timed_out, "memory: the limit had passed before the call"};
    return std::nullopt;
  }

  const std::shared_ptr<Hub::State> hub_;
  const std::string election_;
};

}  // namespace

std::shared_ptr<ConditionalStore> Hub::store(const std::string& election) const {
  return std::make_shared<Store>(state_, election);
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

Opened open_url(const Opening& opening) {
  const auto url = parse_url(opening);
  if (url.scheme != "memory" || !url.hosts.empty() || !url.user.empty() || !url.password.empty())
    throw std::invalid_argument("memory: a URL is \"memory:\" or \"memory:name\", without host, user and password");
  url.expect_no_more({});
  return {.backend = open(hub(url.path), opening.election, opening.candidate, opening.log), .presets = presets()};
}

}  // namespace tenure::memory
