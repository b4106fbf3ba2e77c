// SPDX-License-Identifier: Apache-2.0
// Faults on demand, round any Backend or ConditionalStore: for your tests, and for those of a new store.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>

namespace tenure {

/// What happens to one write: an acquire, a renewal, a release, a compare_and_set or a request to step down.
enum class Mishap {
  none,
  unsent,       ///< It never arrives, and an error says so.
  answer_lost,  ///< It takes effect, but the answer is lost.
  repeated,     ///< It arrives twice. The caller gets the first answer.
  held,         ///< It is on its way when the call ends, and arrives later: deliver_held(). Only of a FaultyStore.
};

/// The script of faults. Any thread may change it while calls are under way; it holds from the next call on. An answer
/// that is lost ends the call at once, or after slow(), with Fault::timed_out.
class Faulty {
 public:
  void next(Mishap mishap, std::size_t n = 1);  ///< The next n writes have it, after those of the script so far.
  void clear();                                 ///< Forgets the script, and drops what is held.

  /// After the script, a write has a mishap with this probability. A seed repeats them in the same order. Writes
  /// that are held arrive by chance with later ones. Throws std::invalid_argument unless 0 <= share <= 1.
  void at_random(std::uint64_t seed, double share);

  void unreachable(bool on);         ///< Every call fails at once.
  void hang(bool on);                ///< Every call ends at its limit, without an answer, and has no effect.
  void slow(Clock::Duration delay);  ///< Each answer comes later by this. After the limit it is lost.

  std::size_t mishaps() const;  ///< How many there were.

 protected:
  /// Makes the call, and returns whether it took effect. It may be made later, and again.
  using Write = std::function<bool(const Limit&)>;

  explicit Faulty(bool holds) : holds_(holds) {}  ///< `holds`: whether the derived class can hold writes.
  ~Faulty() = default;

  /// Makes a write by `call`, and returns its answer, or the error that the caller gets in place of it.
  template <class Told, class Call>
  Told written(const Limit& limit, Call call);
  std::optional<Error> read(const Limit& limit);     ///< Call it before the read.
  std::optional<Error> delayed(const Limit& limit);  ///< Call it after the read.
  bool hangs() const;                                ///< See hang().

  mutable std::mutex mutex_;
  std::deque<Write> held_;
  Write last_;

 private:
  std::optional<Error> write(const Write& write, const Limit& limit);
  Mishap draw();
  std::uint64_t random();

  const bool holds_;
  std::deque<Mishap> script_;
  std::uint64_t random_{};
  double share_{};
  Clock::Duration delay_{};
  bool unreachable_{}, hangs_{};
  std::size_t mishaps_{};
};

/// A Backend with faults.
class FaultyBackend final : public Backend, public Faulty {
 public:
  explicit FaultyBackend(std::shared_ptr<Backend> real);  ///< It has no fault at first.

  Answer acquire(const Limit& limit) override;
  Answer renew(Token token, const Limit& limit) override;
  std::optional<Error> release(const Limit& limit) override;
  Sight observe(const Limit& limit) override;
  void await_change(const Sight& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const std::string& by, const std::string& why, const Limit& limit) override;
  std::optional<Error> accepts(const Timing& timing) override { return real_->accepts(timing); }
  std::string election() const override { return real_->election(); }

 private:
  const std::shared_ptr<Backend> real_;
};

/// A ConditionalStore with faults. It is nearer to the network than a FaultyBackend: what it holds or repeats is what a
/// network holds or repeats.
class FaultyStore final : public ConditionalStore, public Faulty {
 public:
  explicit FaultyStore(std::shared_ptr<ConditionalStore> real);  ///< It has no fault at first.

  std::size_t deliver_held(const Limit& limit);  ///< They arrive in their order. Returns how many took effect.
  std::size_t held() const;                      ///< How many writes wait for deliver_held().
  bool repeat_last(const Limit& limit);          ///< The last write arrives again. Returns whether it took effect.

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;
  std::optional<Error> accepts(const Timing& timing) override { return real_->accepts(timing); }

 private:
  const std::shared_ptr<ConditionalStore> real_;
};

}  // namespace tenure
