// SPDX-License-Identifier: Apache-2.0
// Leadership reads this: token and deadline, in a page that a forked child finds empty.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// It has one writer and any number of readers, and no lock. A reader takes the slot that the count names, then the
/// clock, then the count again. If the count has not moved, the slot was in force when the clock was read, so the
/// answer was true at that very instant. With one slot only, readers would wait for a writer that lost its processor.
class Validity {
 public:
  explicit Validity(Clock& clock);  ///< Throws std::system_error where the kernel cannot wipe a page on fork.
  ~Validity();
  Validity(const Validity&) = delete;
  Validity& operator=(const Validity&) = delete;

  // For the writer: one thread at a time, the decider.
  void publish(Token token, Clock::Time deadline) noexcept;
  void withdraw() noexcept;
  void hear(std::optional<Incumbent> incumbent, Clock::Time until);

  // For any thread.
  struct Now {  // fits two registers: an optional of it costs half as much again as the clock
    Token token;
    Clock::Duration remaining;  ///< Zero: we do not lead.
    explicit operator bool() const noexcept { return remaining > Clock::Duration::zero(); }
  };
  Now now() const noexcept;
  std::optional<Incumbent> incumbent() const;
  bool forked() const noexcept;  ///< This process is a child of the one that made it.

 private:
  struct Slot {
    std::atomic<std::uint64_t> token;
    std::atomic<Clock::rep> deadline;  ///< 0: none
  };
  struct Page {
    std::atomic<std::uint64_t> count;  ///< Starts at 1: zero is a wiped page.
    Slot slots[2];
  };
  void write(Token token, Clock::rep deadline) noexcept;

  Clock& clock_;
  Page* page_;
  mutable std::mutex mutex_;
  std::optional<Incumbent> incumbent_;
  Clock::Time incumbent_until_{};
};

}  // namespace tenure
