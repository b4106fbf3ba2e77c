// SPDX-License-Identifier: Apache-2.0
// Hubs, and records of single elections on them.
#include <stdexcept>
#include <utility>

#include <tenure/kit/names.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "hub_state.hpp"

namespace tenure::memory {

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
