// SPDX-License-Identifier: Apache-2.0
// Goal: readers never see a token beside another tenure's deadline, and never lead after a withdrawal they could have
// seen. Method: one writer against readers, values that betray a mixture.
#include "election/validity.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <tenure/manual_clock.hpp>

#include "in_child.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;

TEST(Validity, TokenAndDeadlineBelongTogether) {
  ManualClock clock(Clock::Time{1s});
  OwnValidity validity(clock);
  std::atomic<bool> done{false};
  std::atomic<int> mixtures{0}, reads{0};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i)
      readers.emplace_back([&] {
        while (!done) {
          const auto now = validity.now();
          if (!now) continue;
          ++reads;
          if (static_cast<std::uint64_t>(now.remaining.count()) != now.token.value) ++mixtures;
        }
      });
    for (std::uint64_t n = 1; reads < 20'000; ++n) {
      validity.publish({n}, clock.now() + Clock::Duration(n));
      if (n % 3 == 0) validity.withdraw();
      if (n % 8 == 0) std::this_thread::yield();  // readers get through only between two writes
    }
    done = true;
  }
  EXPECT_EQ(mixtures, 0);
}

TEST(Validity, WithdrawnIsSeenAtOnce) {
  ManualClock clock;
  OwnValidity validity(clock);
  for (std::uint64_t n = 1; n < 100; ++n) {
    validity.publish({n}, clock.now() + 1s);
    ASSERT_TRUE(validity.now());
    validity.withdraw();
    ASSERT_FALSE(validity.now());
  }
}

TEST(Validity, TheTimeThatAnIncumbentHasLeftRunsDown) {
  ManualClock clock;
  OwnValidity validity(clock);
  validity.hear(Incumbent{.name = "b", .incarnation = {}, .address = {}, .token = {9}, .remaining = 5s},
                clock.now() + 5s);
  clock.advance(2s);
  EXPECT_EQ(validity.incumbent().value().remaining, 3s);
  clock.advance(3s);
  EXPECT_EQ(validity.incumbent(), std::nullopt);
}

/// A clock during whose reading something happens.
class Interrupted : public Clock {
 public:
  Time now() const noexcept override {
    if (auto f = std::exchange(meanwhile, nullptr)) f();
    return Time{1h};
  }
  std::unique_ptr<Waker> make_waker() override { return nullptr; }
  std::int64_t unix_ms() const noexcept override { return 0; }
  mutable std::function<void()> meanwhile;
};

TEST(Validity, WithdrawalDuringTheReadingOfTheClockWins) {
  Interrupted clock;
  OwnValidity validity(clock);
  validity.publish({1}, clock.now() + 1s);
  clock.meanwhile = [&] { validity.withdraw(); };
  EXPECT_FALSE(validity.now());
}

/// The lock was held by a thread that the child does not have.
TEST(Validity, ShowsNoIncumbentInAForkedChildWhateverWasHeldAtTheFork) {
  struct Slow final : Clock {
    Time now() const noexcept override {
      asked = true;
      while (held) std::this_thread::yield();
      return Time{1h};
    }
    std::unique_ptr<Waker> make_waker() override { return nullptr; }
    std::int64_t unix_ms() const noexcept override { return 0; }
    mutable std::atomic<bool> asked{false};
    std::atomic<bool> held{true};
  };
  Slow clock;
  OwnValidity validity(clock);
  validity.hear(Incumbent{.name = "n", .incarnation = "i", .address = "a", .token = {7}, .remaining = 5s},
                Clock::Time{2h});
  std::jthread inside([&] { EXPECT_TRUE(validity.incumbent()); });
  while (!clock.asked) std::this_thread::yield();
  test::in_child([&] {
    clock.held = false;
    return !validity.incumbent();
  });
  clock.held = false;
}

}  // namespace
}  // namespace tenure
