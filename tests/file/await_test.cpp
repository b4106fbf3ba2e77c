// SPDX-License-Identifier: Apache-2.0
// Goal: a standby learns of every end and every beginning at once, and sleeps meanwhile. Method: one thread
// waits on the store, the test does something, and the wait must end long before its limit. Idleness by what
// was not looked at.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/inotify.h>

#include <thread>

#include "store.hpp"
#include "support.hpp"

namespace tenure::file {
namespace {

constexpr Clock::Duration patience = 30s;

struct FileAwait : ::testing::Test {
  Scratch base;
  fs::path directory = base / "jobs";
  Store holder{base, "jobs"}, standby{base, "jobs"};
  Version seen{{7}, 70};

  void SetUp() override {
    ASSERT_TRUE(swap(holder, std::nullopt, record(7, 70)));
    ASSERT_EQ(read(standby).record->beat, 70u);
  }

  /// Whether waiting ends because of what happens.
  bool ends(const std::function<void()>& happens) {
    const auto limit = within(patience);
    std::thread waiting([&] { standby.await_change(seen, limit); });
    happens();
    waiting.join();
    return boot_clock().now() < limit.by;
  }

  /// Whether it goes on waiting.
  bool lasts(const std::function<void()>& happens) {
    std::stop_source stop;
    std::atomic<bool> ended{false};
    std::thread waiting([&] {
      standby.await_change(seen, within(patience, boot_clock(), stop.get_token()));
      ended = true;
    });
    happens();
    wait_out_for(100ms);
    const bool waited = !ended;
    stop.request_stop();
    waiting.join();
    return waited;
  }

  static void wait_out_for(Clock::Duration time) {
    const auto waker = boot_clock().make_waker();
    waker->wait_until(boot_clock().now() + time);
  }

  void release() {
    auto last = record(7, 71);
    last.released = true;
    ASSERT_TRUE(swap(holder, version(7, {70}), last));
  }
};

TEST_F(FileAwait, AReleaseEndsIt) {
  EXPECT_TRUE(ends([&] { release(); }));
}

TEST_F(FileAwait, AReleaseBeforeItEndsIt) {
  release();
  EXPECT_TRUE(ends([] {}));
}

TEST_F(FileAwait, ANewTenureEndsIt) {
  Store other{base, "jobs"};
  EXPECT_TRUE(ends([&] { ASSERT_TRUE(swap(other, version(7, {70}), record(8, 80))); }));
}

TEST_F(FileAwait, ADeadHolderEndsIt) {
  release();
  Child dies([&] {
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, version(7, {71}), record(8, 80)));
    Child::ready_and_sleep();
  });
  ASSERT_TRUE(dies.await_ready());
  ASSERT_FALSE(read(standby).record->released);
  seen = {{8}, 80};
  EXPECT_TRUE(ends([&] { dies.kill(); }));
  EXPECT_TRUE(read(standby).record->released);
}

TEST_F(FileAwait, ADeletedFileEndsIt) {
  EXPECT_TRUE(ends([&] { fs::remove(directory / "1"); }));
}

TEST_F(FileAwait, ADeletedDirectoryEndsIt) {
  EXPECT_TRUE(ends([&] { fs::remove_all(directory); }));
}

TEST_F(FileAwait, AReplacedDirectoryEndsIt) {
  EXPECT_TRUE(ends([&] { fs::rename(directory, base / "old"); }));
}

TEST_F(FileAwait, TheFirstTenureEndsIt) {
  Store a{base, "other"}, b{base, "other"};
  const auto limit = within(patience);
  std::thread waiting([&] { a.await_change(std::nullopt, limit); });
  ASSERT_TRUE(swap(b, std::nullopt, record(7, 70)));
  waiting.join();
  EXPECT_LT(boot_clock().now(), limit.by);
}

TEST_F(FileAwait, RenewalsAreNoNews) {
  EXPECT_TRUE(lasts([&] {
    for (std::uint64_t beat = 71; beat < 100; ++beat)
      ASSERT_TRUE(swap(holder, version(7, {beat - 1}), record(7, beat)));
  }));
}

TEST_F(FileAwait, AReleaseThatWasToldIsNoNews) {
  release();
  ASSERT_TRUE(read(standby).record->released);
  EXPECT_TRUE(lasts([] {}));
}

TEST_F(FileAwait, StrangersAreNoNews) {
  EXPECT_TRUE(lasts([&] { std::ofstream(directory / "README") << "x"; }));
}

TEST_F(FileAwait, ManyWaitWithOneInstance) {
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::thread> waiting;
  const auto limit = within(patience);
  for (int i = 0; i < 8; ++i) {
    stores.push_back(std::make_unique<Store>(base, "jobs"));
    ASSERT_TRUE(read(*stores.back()).record);
    waiting.emplace_back([&, i] { stores[static_cast<std::size_t>(i)]->await_change(seen, limit); });
  }
  const auto instances = [] {
    std::size_t found = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      found += fs::read_symlink(entry, gone).string() == "anon_inode:inotify";
    }
    return found;
  };
  EXPECT_TRUE(eventually([&] { return instances() == 1; }));
  release();
  for (auto& thread : waiting) thread.join();
  EXPECT_LT(boot_clock().now(), limit.by);
  stores.clear();
  EXPECT_EQ(instances(), 0u) << "and it goes with the last of them";
}

// The user has no inotify instance left.
TEST_F(FileAwait, WithoutInotifyItLooksNowAndThen) {
  constexpr int cannot = 77;
  Child deaf([&] {
    Store store{base, "jobs"};
    ASSERT_TRUE(read(store).record);
    const bool limited =
        ::unshare(CLONE_NEWUSER) == 0 && (std::ofstream("/proc/sys/user/max_inotify_instances") << 0 << std::flush);
    if (!limited || ::inotify_init1(IN_CLOEXEC) >= 0) ::_exit(cannot);
    const auto limit = within(patience);
    std::thread waiting([&] { store.await_change(seen, limit); });
    Child::ready();
    waiting.join();
    EXPECT_LT(boot_clock().now(), limit.by);
  });
  if (deaf.await_ready()) release();
  const int status = deaf.end();
  if (WEXITSTATUS(status) == cannot) GTEST_SKIP() << "no user namespace to limit inotify instances in";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tenure::file
