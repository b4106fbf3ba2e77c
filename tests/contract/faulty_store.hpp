// SPDX-License-Identifier: Apache-2.0
// Goal: lost, late and doubled writes for any store. Method: a store around a store, which forwards or keeps.
#pragma once
#include <cstddef>
#include <memory>
#include <tenure/conditional_store.hpp>
#include <utility>
#include <vector>

namespace tenure::contract {

class FaultyStore final : public ConditionalStore {
 public:
  explicit FaultyStore(std::shared_ptr<ConditionalStore> real) : real_(std::move(real)) {}

  void lose_answers(std::size_t n) { lose_ = n; }  ///< The next n writes take effect, but their answers are lost.
  void hold_writes(std::size_t n) { hold_ = n; }   ///< The next n writes are held on their way.
  std::size_t held() const { return held_.size(); }

  /// Lets the held writes arrive in their order. Returns how many took effect.
  std::size_t deliver_held(const Limit& limit) {
    std::size_t applied = 0;
    for (const auto& [expected, next] : std::exchange(held_, {})) applied += apply(expected, next, limit);
    return applied;
  }

  /// Lets the last write arrive a second time. Returns whether it took effect again.
  bool repeat_last(const Limit& limit) { return last_ && apply(last_->first, last_->second, limit); }

  Result<Read> read(const Limit& limit) override { return real_->read(limit); }

  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    last_ = Write{expected, next};
    if (take(hold_)) {
      held_.emplace_back(expected, next);
      return Error{Fault::timed_out, "held back"};
    }
    auto result = real_->compare_and_set(expected, next, limit);
    if (take(lose_)) return Error{Fault::timed_out, "answer lost"};
    return result;
  }

  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    return real_->await_change(seen, limit);
  }
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override {
    return real_->request_step_down(request, limit);
  }
  std::optional<Error> accepts(const Timing& timing) override { return real_->accepts(timing); }

 private:
  using Write = std::pair<std::optional<Expected>, Record>;

  static bool take(std::size_t& count) { return count > 0 && count-- > 0; }

  bool apply(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
    const auto result = real_->compare_and_set(expected, next, limit);
    return result && result->applied;
  }

  const std::shared_ptr<ConditionalStore> real_;
  std::size_t lose_{}, hold_{};
  std::vector<Write> held_;
  std::optional<Write> last_;
};

}  // namespace tenure::contract
