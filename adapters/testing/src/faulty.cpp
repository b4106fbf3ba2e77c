// SPDX-License-Identifier: Apache-2.0
// Faults by script or by a seed, round a Backend or a ConditionalStore.
#include <tenure/faulty.hpp>

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <tenure/kit/wait.hpp>

#include "kit/random.hpp"

namespace tenure {
namespace {

// Whether a write took effect.
bool applied(const Answer& answer) { return std::holds_alternative<Granted>(answer); }
bool applied(const std::optional<Error>& error) { return !error; }
bool applied(const Result<Swap>& swap) { return swap && swap->applied; }

Error lost() { return {Fault::timed_out, "the answer was lost (a fault on demand)"}; }

}  // namespace

// ---- the script ----

void Faulty::next(Mishap mishap, std::size_t n) {
  if (mishap == Mishap::held && !holds_)
    throw std::invalid_argument(
        "FaultyBackend::next: a backend's call cannot arrive after it has returned; a FaultyStore below lock_table() "
        "can hold writes");
  const std::lock_guard lock(mutex_);
  script_.insert(script_.end(), n, mishap);
}

void Faulty::clear() {
  const std::lock_guard lock(mutex_);
  script_.clear();
  held_.clear();
  share_ = 0;
}

void Faulty::at_random(std::uint64_t seed, double share) {
  if (!(share >= 0 && share <= 1)) throw std::invalid_argument("Faulty::at_random: share must be between 0 and 1");
  const std::lock_guard lock(mutex_);
  random_ = seed;
  share_ = share;
}

void Faulty::unreachable(bool on) {
  const std::lock_guard lock(mutex_);
  unreachable_ = on;
}

void Faulty::hang(bool on) {
  const std::lock_guard lock(mutex_);
  hangs_ = on;
}

void Faulty::slow(Clock::Duration delay) {
  const std::lock_guard lock(mutex_);
  delay_ = delay;
}

std::size_t Faulty::mishaps() const {
  const std::lock_guard lock(mutex_);
  return mishaps_;
}

bool Faulty::hangs() const {
  const std::lock_guard lock(mutex_);
  return hangs_;
}

// ---- the calls ----

std::uint64_t Faulty::random() { return next_random(random_); }

Mishap Faulty::draw() {
  constexpr Mishap kinds[] = {Mishap::unsent, Mishap::answer_lost, Mishap::repeated, Mishap::held};
  auto mishap = Mishap::none;
  if (!script_.empty()) {
    mishap = script_.front();
    script_.pop_front();
  } else if (share_ > 0 && static_cast<double>(random() >> 11) < share_ * 0x1p53) {
    mishap = kinds[random() % (holds_ ? 4 : 3)];
  }
  mishaps_ += mishap != Mishap::none;
  return mishap;
}

std::optional<Error> Faulty::write(const Write& write, const Limit& limit) {
  if (auto error = read(limit)) return error;
  std::deque<Write> late;
  const auto mishap = [&] {
    const std::lock_guard lock(mutex_);
    const auto drawn = draw();
    last_ = write;
    if (drawn == Mishap::held)
      held_.push_back(write);
    else if (share_ > 0 && random() % 2)
      late.swap(held_);
    return drawn;
  }();
  if (mishap == Mishap::unsent) return Error{Fault::unreachable, "it was not sent (a fault on demand)"};
  for (const auto& before : late) before(limit);
  if (mishap != Mishap::held) write(limit);
  if (mishap == Mishap::repeated) write(limit);
  if (auto error = delayed(limit)) return error;
  if (mishap == Mishap::held || mishap == Mishap::answer_lost) return lost();
  return std::nullopt;
}

/// The first answer counts, although a write may be made twice or late.
template <class Told, class Call>
Told Faulty::written(const Limit& limit, Call call) {
  const auto kept = std::make_shared<std::optional<Told>>();
  auto error = write(
      [kept, call = std::move(call)](const Limit& within) {
        auto told = call(within);
        const bool effect = applied(told);
        if (!*kept) kept->emplace(std::move(told));
        return effect;
      },
      limit);
  if (!error) return **kept;
  if constexpr (std::is_same_v<Told, Answer>)
    return Unknown{std::move(*error)};
  else
    return std::move(*error);
}

std::optional<Error> Faulty::read(const Limit& limit) {
  if (hangs()) {
    wait_out(limit);
    return Error{Fault::timed_out, "the store hangs (a fault on demand)"};
  }
  const std::lock_guard lock(mutex_);
  if (unreachable_) return Error{Fault::unreachable, "the store is unreachable (a fault on demand)"};
  return std::nullopt;
}

std::optional<Error> Faulty::delayed(const Limit& limit) {
  const auto delay = [&] {
    const std::lock_guard lock(mutex_);
    return delay_;
  }();
  if (delay <= Clock::Duration::zero()) return std::nullopt;
  const auto until = limit.clock.now() + delay;
  wait_out({limit.clock, std::min(limit.by, until), limit.stop});
  return limit.clock.now() < until ? std::optional(lost()) : std::nullopt;
}

// ---- a backend ----

FaultyBackend::FaultyBackend(std::shared_ptr<Backend> real)
    : Faulty(false),
      real_(real ? std::move(real) : throw std::invalid_argument("FaultyBackend: the backend is null")) {}

Answer FaultyBackend::acquire(const Limit& limit) {
  return written<Answer>(limit, [real = real_](const Limit& within) { return real->acquire(within); });
}

Answer FaultyBackend::renew(Token token, const Limit& limit) {
  return written<Answer>(limit, [real = real_, token](const Limit& within) { return real->renew(token, within); });
}

std::optional<Error> FaultyBackend::release(const Limit& limit) {
  return written<std::optional<Error>>(limit, [real = real_](const Limit& within) { return real->release(within); });
}

Sight FaultyBackend::observe(const Limit& limit) {
  if (auto error = read(limit)) return Unknown{std::move(*error)};
  auto sight = real_->observe(limit);
  if (auto error = delayed(limit)) return Unknown{std::move(*error)};
  return sight;
}

void FaultyBackend::await_change(const Sight& seen, const Limit& limit) {
  if (hangs())
    wait_out(limit);
  else
    real_->await_change(seen, limit);
}

std::optional<Error> FaultyBackend::request_step_down(const std::string& by, const std::string& why,
                                                      const Limit& limit) {
  return written<std::optional<Error>>(
      limit, [real = real_, by, why](const Limit& within) { return real->request_step_down(by, why, within); });
}

// ---- a store ----

FaultyStore::FaultyStore(std::shared_ptr<ConditionalStore> real)
    : Faulty(true), real_(real ? std::move(real) : throw std::invalid_argument("FaultyStore: the store is null")) {}

std::size_t FaultyStore::deliver_held(const Limit& limit) {
  const auto late = [&] {
    const std::lock_guard lock(mutex_);
    return std::exchange(held_, {});
  }();
  return static_cast<std::size_t>(std::count_if(late.begin(), late.end(), [&](const auto& w) { return w(limit); }));
}

std::size_t FaultyStore::held() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

bool FaultyStore::repeat_last(const Limit& limit) {
  const auto last = [&] {
    const std::lock_guard lock(mutex_);
    return last_;
  }();
  return last && last(limit);
}

Result<Read> FaultyStore::read(const Limit& limit) {
  if (auto error = Faulty::read(limit)) return *error;
  auto found = real_->read(limit);
  if (auto error = delayed(limit)) return *error;
  return found;
}

Result<Swap> FaultyStore::compare_and_set(const std::optional<Expected>& expected, const Record& next,
                                          const Limit& limit) {
  return written<Result<Swap>>(limit, [real = real_, expected, next](const Limit& within) {
    return real->compare_and_set(expected, next, within);
  });
}

std::optional<Version> FaultyStore::await_change(const std::optional<Version>& seen, const Limit& limit) {
  if (!hangs()) return real_->await_change(seen, limit);
  wait_out(limit);
  return std::nullopt;
}

std::optional<Error> FaultyStore::request_step_down(const StepDown& request, const Limit& limit) {
  return written<std::optional<Error>>(
      limit, [real = real_, request](const Limit& within) { return real->request_step_down(request, within); });
}

}  // namespace tenure
