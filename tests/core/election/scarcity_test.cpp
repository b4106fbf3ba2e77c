// SPDX-License-Identifier: Apache-2.0
// Goal: want of descriptors or threads kills no process and holds up no end, and who has no memory to start may try
// again. Method: the limit of descriptors is lowered to what is open; pthread_create() and operator new of this program
// fail when told to.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <system_error>

#include <tenure/elections.hpp>
#include <tenure/leader_task.hpp>
#include <tenure/observer.hpp>

#include "election/work_thread.hpp"
#include "group/model_store.hpp"
#include "no_descriptors.hpp"
#include "scripted_backend.hpp"

namespace {
std::atomic<int> threads_left{-1};      ///< Negative: any number.
thread_local int allocations_left{-1};  ///< Of this thread.

void* allocated(std::size_t size) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size > 0 ? size : 1);
}
}  // namespace

// Of this whole program, and never inlined: g++ would warn of free() for what new gave.
__attribute__((noinline)) void* operator new(std::size_t size) {
  if (void* const memory = allocated(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocated(size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

/// The sanitizer's own, if there is one. By clang++ it is a part of this program, and not the next one after it. A
/// thread that was made without it is unknown to the sanitizer.
extern "C" __attribute__((weak)) decltype(pthread_create) __interceptor_pthread_create;

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* with) {
  static const auto real = __interceptor_pthread_create
                               ? __interceptor_pthread_create
                               : reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  return real(thread, attributes, run, with);
}

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::NoDescriptors;
using test::ScriptedBackend;

class OnlyThreads {
 public:
  explicit OnlyThreads(int n) { threads_left = n; }
  ~OnlyThreads() { threads_left = -1; }
  OnlyThreads(const OnlyThreads&) = delete;
  OnlyThreads& operator=(const OnlyThreads&) = delete;
};

class OnlyMemory {
 public:
  explicit OnlyMemory(int allocations) { allocations_left = allocations; }
  ~OnlyMemory() { allocations_left = -1; }
  OnlyMemory(const OnlyMemory&) = delete;
  OnlyMemory& operator=(const OnlyMemory&) = delete;
};

/// Held by somebody else, and waits on the manager's own clock: with a waker made for each wait.
struct HeldStore : Backend {
  Answer acquire(const Limit&) override {
    ++acquires;
    return Denied{};
  }
  Answer renew(Token, const Limit&) override { return Denied{}; }
  std::optional<Error> release(const Limit&) override { return std::nullopt; }
  Sight observe(const Limit&) override {
    ++acquires;
    return Vacant{};
  }
  void await_change(const Sight&, const Limit& limit) override {
    ++waits;
    wait_out(limit);
  }
  std::atomic<int> acquires{0}, waits{0};
};

struct CountedStore : test::ModelStore {
  CountedStore() : ModelStore(false) {}
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    ++commits;
    return ModelStore::commit(commit, limit);
  }
  std::atomic<int> commits{0};
};

/// Asks often, and has time for a machine that is slow.
constexpr Timing quick{.term = 1min, .renew = 100ms, .retry = 20ms, .margin = 1s, .call = 20s, .drain = 10s};

struct WantOfDescriptors : testing::Test {
  void SetUp() override { TENURE_NEEDS_NO_DESCRIPTORS(); }
};

TEST_F(WantOfDescriptors, NoDescriptorIsLeftWhereTheTestSaysSo) {
  const NoDescriptors none;
  EXPECT_THROW(boot_clock().make_waker(), std::system_error);
}

TEST_F(WantOfDescriptors, ALeaderEndsWithoutADescriptor) {
  const auto scripted = std::make_shared<ScriptedBackend>();
  std::optional<LeaderManager> manager(std::in_place, scripted, quick);
  manager->start();
  ASSERT_TRUE(manager->await_leadership(10s));
  const NoDescriptors none;
  EXPECT_FALSE(manager->await_ended(1ms)) << "waiting takes none either";
  manager->stop();
  manager.reset();
}

TEST_F(WantOfDescriptors, AFollowerOutlivesALackOfDescriptorsAndReportsIt) {
  const auto scripted = std::make_shared<HeldStore>();
  std::atomic<int> told{0};
  Hooks hooks;
  hooks.error = [&](const Error&) { ++told; };
  LeaderManager manager(scripted, quick, hooks);
  {
    const NoDescriptors none;
    manager.start();
    ASSERT_TRUE(eventually([&] { return scripted->acquires >= 3; })) << "it asks on, with pauses";
  }
  EXPECT_EQ(told, 1);
}

TEST_F(WantOfDescriptors, AnObserverOutlivesAWantOfDescriptors) {
  const auto scripted = std::make_shared<HeldStore>();
  const auto short_waits = Timing::of(300ms);
  std::optional<Observer> observer(std::in_place, scripted, short_waits);
  ASSERT_TRUE(eventually([&] { return scripted->waits >= 1; }));
  const NoDescriptors none;
  const int looks = scripted->acquires;
  ASSERT_TRUE(eventually([&] { return scripted->acquires >= looks + 3; })) << "it looks on, with pauses";
  observer.reset();
}

TEST_F(WantOfDescriptors, AGroupIsNotMadeWithoutThemAndOneThatLeadsGoesOnAndEnds) {
  const auto store = std::make_shared<CountedStore>();
  std::optional<Elections> elections(std::in_place, store, Candidate{"a", ""}, quick, Hooks{.log = no_log});
  elections->join(std::vector<std::string>{"x", "y"});
  elections->start();
  ASSERT_TRUE(eventually([&] { return elections->led().size() == 2; }));
  const NoDescriptors none;
  try {
    const Elections another(store, {"b", ""}, quick);
    ADD_FAILURE() << "it was made";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::too_many_files_open) << e.what();
  }
  const int renewals = store->commits;
  ASSERT_TRUE(eventually([&] { return store->commits >= renewals + 2; })) << "it is renewed";
  EXPECT_EQ(elections->led().size(), 2u);
  elections->stop();
  elections.reset();
}

struct One {
  static constexpr int threads = 3;
  LeaderManager owner{std::make_shared<ScriptedBackend>(), quick};
  bool leads() const { return owner.leadership().is_leader(); }
};
struct Many {
  static constexpr int hooks = 2, threads = 3 + hooks;
  Elections owner{std::make_shared<test::ModelStore>(false), {"a", ""}, quick, {.log = no_log}, {}, hooks};
  Many() { owner.join("x"); }
  bool leads() const { return owner.is_leader("x"); }
};
template <class Form>
struct ScarcityOfEither : testing::Test {};
using Forms = testing::Types<One, Many>;
TYPED_TEST_SUITE(ScarcityOfEither, Forms);

TYPED_TEST(ScarcityOfEither, WithoutItsThreadsStartThrowsAndEverythingEnds) {
  for (int there = 0; there < TypeParam::threads; ++there) {
    TypeParam form;
    try {
      const OnlyThreads few(there);
      form.owner.start();
      ADD_FAILURE() << "it was started with " << there << " threads";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again) << e.what();
    }
    EXPECT_FALSE(form.leads());
    if (there == 0) continue;  // destroyed as it is
    if (there == 1) {
      form.owner.stop();
      continue;
    }
    form.owner.start();
    EXPECT_TRUE(eventually([&] { return form.leads(); })) << "it may be tried again";
  }
}

template <class Owner>
bool starts_with(Owner& owner, int allocations) {
  const OnlyMemory little(allocations);
  try {
    owner.start();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

TYPED_TEST(ScarcityOfEither, WhoHasNoMemoryToStartMayBeStartedAgain) {
  bool enough = false;
  for (int there = 0; !enough; ++there) {
    TypeParam form;
    enough = starts_with(form.owner, there);
    if (!enough) form.owner.start();
    ASSERT_TRUE(eventually([&] { return form.leads(); })) << there;
  }
}

TEST(Scarcity, ATaskOrAnObserverWithoutAThreadIsNone) {
  const auto scripted = std::make_shared<ScriptedBackend>();
  for (int there = 0; there < 4; ++there) {
    const OnlyThreads few(there);
    EXPECT_THROW(LeaderTask(scripted, quick, [](std::stop_token, Token) {}), std::system_error) << there;
  }
  const OnlyThreads none(0);
  EXPECT_THROW(Observer(scripted, quick), std::system_error);
  EXPECT_TRUE(scripted->diary().empty());
}

/// Else it would lead without its work.
TEST(Scarcity, ATaskBeginsItsWorkWithoutMemory) {
  std::atomic<int> works{0};
  std::stop_source stop;
  WorkThread worker([&](std::stop_token, Token token) { works += static_cast<int>(token.value); },
                    LeaderTask::OnReturn::stay, {});
  const Elected elected{std::string(200, 'e'), {7}, stop.get_token()};
  allocations_left = 0;
  worker.begin(elected);
  allocations_left = -1;
  worker.await_return();
  EXPECT_EQ(works, 7);
}

}  // namespace
}  // namespace tenure
