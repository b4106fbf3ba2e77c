// SPDX-License-Identifier: Apache-2.0
// Leadership reads this: token and deadline, in memory that a forked child finds empty.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// Whether we lead an election at this very instant. Any thread may ask.
class Validity {
 public:
  /// A token of 0: others may lead beside us, and there is none to give out.
  struct Now {  // fits two registers: an optional of it costs half as much again as the clock
    Token token;
    Clock::Duration remaining;  ///< Zero: we do not lead.
    explicit operator bool() const noexcept { return remaining > Clock::Duration::zero(); }
  };

  explicit Validity(Clock& clock) : clock_(clock) {}
  virtual ~Validity() = default;
  Validity(const Validity&) = delete;
  Validity& operator=(const Validity&) = delete;

  virtual Now now() const noexcept = 0;
  virtual bool exclusive() const noexcept { return true; }
  virtual std::optional<Incumbent> incumbent() const = 0;

  void progressed() const noexcept { progressed_at_ = clock_.now().time_since_epoch().count(); }  ///< The user's work.
  Clock::Time progressed_at() const noexcept { return Clock::Time(Clock::Duration(progressed_at_.load())); }

 protected:
  Clock& clock_;

 private:
  mutable std::atomic<Clock::rep> progressed_at_{0};
};

/// Whose lease stands, and until when. It has one writer and any number of readers, and no lock. A reader takes the
/// slot that the count names, then the clock, then the count again. If the count has not moved, the slot was in force
/// when the clock was read, so the answer was true at that very instant. With one slot only, readers would wait for a
/// writer that lost its processor.
class LeasePage {
 public:
  LeasePage();  ///< Throws std::system_error where the kernel cannot wipe a page on fork.
  ~LeasePage();
  LeasePage(const LeasePage&) = delete;
  LeasePage& operator=(const LeasePage&) = delete;

  /// The writer calls it. `holder` is a token or a session. A deadline of 0 is nobody's.
  void write(std::uint64_t holder, Clock::rep deadline) noexcept;

  // Any thread may call these.
  struct View {
    std::uint64_t holder, count;
    Clock::rep deadline;
  };
  View view() const noexcept {
    const auto count = page_->count.load(std::memory_order_acquire);
    const auto& slot = page_->slots[count % 2];
    const auto holder = slot.holder.load(std::memory_order_acquire);
    return {holder, count, slot.deadline.load(std::memory_order_acquire)};
  }
  /// Nothing was written since.
  bool stands(const View& view) const noexcept { return page_->count.load(std::memory_order_acquire) == view.count; }
  /// Whether this process is a child of the one that made the page.
  bool forked() const noexcept { return page_->count.load(std::memory_order_relaxed) == 0; }

 private:
  struct Slot {
    std::atomic<std::uint64_t> holder;
    std::atomic<Clock::rep> deadline;
  };
  struct Page {
    std::atomic<std::uint64_t> count;  ///< Starts at 1: zero is a wiped page.
    Slot slots[2];
  };
  Page* page_;
};

/// The Validity of a single election. Only the thread that decides writes it.
class OwnValidity final : public Validity {
 public:
  using Validity::Validity;

  void publish(Token token, Clock::Time deadline) noexcept;
  void withdraw() noexcept;
  void hear(std::optional<Incumbent> incumbent, Clock::Time until);

  Now now() const noexcept override;
  std::optional<Incumbent> incumbent() const override;

  Clock::Time deadline() const noexcept { return Clock::Time(Clock::Duration(page_.view().deadline)); }
  bool forked() const noexcept { return page_.forked(); }

 private:
  LeasePage page_;
  mutable std::mutex mutex_;
  std::optional<Incumbent> incumbent_;
  Clock::Time incumbent_until_{};
};

}  // namespace tenure
