// SPDX-License-Identifier: Apache-2.0
// How you test a class of yours that makes its LeaderManager itself: its store and its clock come from outside.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <tenure/faulty.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>

using namespace std::chrono_literals;

namespace {

/// Yours. The manager is its last member, so that no hook is called once the others are gone.
class Service {
 public:
  explicit Service(std::shared_ptr<tenure::Backend> backend, tenure::Timing timing = tenure::Timing::of(10s),
                   tenure::Clock& clock = tenure::boot_clock())
      : manager_(std::move(backend), timing, hooks(), clock) {
    manager_.start();
  }
  bool running() const { return running_; }
  tenure::Leadership leadership() const { return manager_.leadership(); }

 private:
  tenure::Hooks hooks() {
    tenure::Hooks hooks;
    hooks.elected = [this](const tenure::Elected&) { running_ = true; };
    hooks.ousting = [this](const tenure::Ousting&) { running_ = false; };
    return hooks;
  }

  std::atomic<bool> running_{false};
  tenure::LeaderManager manager_;
};

/// The manager has threads of its own, so a test waits for what they do. The election's time stands still meanwhile.
bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 30s;  // of a test that fails
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return condition();
}

const auto timing = tenure::Timing::of(10s);

//! [service]
TEST(Service, StopsBeforeTheLeaseEnds) {
  tenure::ManualClock clock;  // outlives the service
  const tenure::memory::Hub hub;
  const auto store = std::make_shared<tenure::FaultyBackend>(tenure::memory::open(hub, "reports"));
  Service service(store, timing, clock);
  ASSERT_TRUE(eventually([&] { return service.running(); }));

  store->hang(true);
  clock.advance(service.leadership().remaining());
  EXPECT_TRUE(eventually([&] { return !service.running(); }));  // and the lease has timing.margin left

  store->hang(false);
  EXPECT_TRUE(eventually([&] {
    if (clock.await_parked(1)) clock.advance(timing.retry);
    return service.running();
  })) << "it leads again";
}
//! [service]

TEST(Service, FollowsWhileAnotherRunsAndRunsAfterIt) {
  tenure::ManualClock clock;
  const tenure::memory::Hub hub;  // two services at one store
  auto first = std::make_unique<Service>(tenure::memory::open(hub, "reports", {.name = "first"}), timing, clock);
  ASSERT_TRUE(eventually([&] { return first->running(); }));
  Service second(tenure::memory::open(hub, "reports", {.name = "second"}), timing, clock);
  ASSERT_TRUE(eventually([&] {
    const auto leader = second.leadership().incumbent();
    return leader && leader->name == "first";
  }));
  EXPECT_FALSE(second.running());
  first.reset();
  EXPECT_TRUE(eventually([&] { return second.running(); })) << "at once: no time has passed";
}

TEST(Service, GivesWayIfSomebodyAsks) {
  tenure::ManualClock clock;
  const tenure::memory::Hub hub;
  Service service(tenure::memory::open(hub, "reports"), timing, clock);
  ASSERT_TRUE(eventually([&] { return service.running(); }));
  const auto before = service.leadership().token();
  const auto refused =
      tenure::memory::open(hub, "reports")->request_step_down("ops", "upgrade", {clock, clock.now() + timing.call, {}});
  ASSERT_FALSE(refused);
  clock.advance(timing.renew);  // it hears of it with its next renewal
  EXPECT_TRUE(eventually([&] { return service.leadership().token() != before; }));
}

}  // namespace
