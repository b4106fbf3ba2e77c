// SPDX-License-Identifier: Apache-2.0
// Goal: whether we lead an election is found by its name while others come and go, and what nobody needs goes. Method:
// thousands of names; one writer against readers who never rest.
#include "group/slots.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <tenure/manual_clock.hpp>

namespace tenure {
namespace {

using namespace std::chrono_literals;

struct Scene {
  Scene() { page->write(7, Clock::Time::max().time_since_epoch().count()); }
  ManualClock clock{Clock::Time{1h}};
  std::shared_ptr<LeasePage> page{std::make_shared<LeasePage>()};
  std::atomic<int> made{0};
  Slots slots{page, [this](const std::string&) {
                ++made;
                return std::make_shared<GroupValidity>(page, clock);
              }};
};

TEST(Slots, AreFoundByNameAmongThousands) {
  Scene scene;
  for (std::uint64_t i = 1; i <= 5000; ++i) scene.slots.hold(std::to_string(i))->lead({i}, {7});
  for (std::uint64_t i = 1; i <= 5000; ++i) ASSERT_EQ(scene.slots.now(std::to_string(i)).token.value, i);
  EXPECT_FALSE(scene.slots.now("0"));
  EXPECT_FALSE(scene.slots.now(""));
  for (std::uint64_t i = 1; i <= 5000; i += 2) scene.slots.let_go(std::to_string(i));
  for (std::uint64_t i = 1; i <= 5000; ++i)
    ASSERT_EQ(static_cast<bool>(scene.slots.now(std::to_string(i))), i % 2 == 0);
  EXPECT_EQ(scene.slots.led().size(), 2500u);
  EXPECT_EQ(scene.slots.size(), 2500u);
}

TEST(Slots, WhatSomebodyKeptIsTheSameWhenItComesBack) {
  Scene scene;
  auto kept = scene.slots.get("job");
  EXPECT_EQ(scene.slots.hold("job"), kept);
  scene.slots.let_go("job");
  scene.slots.hold("job")->lead({1}, {7});
  EXPECT_TRUE(kept->now());
  kept.reset();
  EXPECT_EQ(scene.made, 1);
}

TEST(Slots, WhatWasOnlyAskedForGoes) {
  Scene scene;
  const auto kept = scene.slots.get("kept");
  scene.slots.hold("held");
  for (int i = 0; i < 10'000; ++i) scene.slots.get(std::to_string(i));
  EXPECT_LE(scene.slots.size(), 70u);
  EXPECT_EQ(scene.slots.get("kept"), kept);
  const auto made = scene.made.load();
  scene.slots.hold("held");
  EXPECT_EQ(scene.made, made) << "it was there";
}

TEST(Slots, ReadersFindWhatStaysWhileOthersComeAndGo) {
  ManualClock clock(Clock::Time{1s});
  const auto page = std::make_shared<LeasePage>();
  page->write(7, Clock::Time::max().time_since_epoch().count());
  Slots slots{page, [&](const std::string&) { return std::make_shared<GroupValidity>(page, clock); }};
  slots.hold("stays")->lead({1}, {7});
  std::atomic<bool> done{false};
  std::atomic<int> missed{0}, wrong{0}, reads{0};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i)
      readers.emplace_back([&] {
        while (!done) {
          missed += !slots.now("stays");
          for (std::uint64_t n = 10; n < 20; ++n) {
            const auto now = slots.now("e" + std::to_string(n));
            wrong += now && now.token.value % 100 != n;
          }
          ++reads;
        }
      });
    for (std::uint64_t n = 0; reads < 5000; ++n) {
      const auto name = "e" + std::to_string(n % 150);
      slots.hold(name)->lead({100 * n + n % 150 % 100}, {7});
      if (n % 3) {
        slots.get(name)->withdraw();
        slots.let_go(name);
      }
    }
    done = true;
  }
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenure
