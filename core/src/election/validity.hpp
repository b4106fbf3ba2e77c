// SPDX-License-Identifier: Apache-2.0
// What Leadership reads: token and deadline in a page that a forked child finds empty.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// One writer, any readers, lock-free. Two slots and a count: readers take the slot that the count names, then the
/// clock, then the count again. If it has not moved, what they read was in force when they read the clock, so the
/// answer was true at that very instant. (One slot would make readers wait for a writer that lost its processor.)
class Validity {
 public:
  explicit Validity(Clock& clock);  ///< Throws std::system_error where the kernel cannot wipe a page on fork.
  ~Validity();
  Validity(const Validity&) = delete;
  Validity& operator=(const Validity&) = delete;

  // The writer: one thread at a time, whoever decides.
  void publish(Token token, Clock::Time deadline) noexcept;
  void withdraw() noexcept;
  void hear(std::optional<Incumbent> incumbent, Clock::Time until);

  // Anybody.
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
