// SPDX-License-Identifier: Apache-2.0
// Goal: a follower learns of every end and every beginning at once, and sleeps meanwhile. Method: one thread waits on
// the store by a clock that stands still, so that only an event ends the wait; where the store asks for a moment's
// patience, the test gives it that and no more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <tenure/file.hpp>

#include "store.hpp"
#include "support.hpp"

namespace tenure::file {
namespace {

struct FileAwait : ::testing::Test {
  Scratch base;
  fs::path directory = made(base / "jobs");
  std::atomic<int> looks{0};
  Store holder{base, "jobs"}, follower{base, "jobs", [this](Step step) { looks += step == Step::looked; }};
  ManualClock clock;
  Version seen{{7}, 70};

  void SetUp() override {
    ASSERT_TRUE(swap(holder, std::nullopt, record(7, 70)));
    ASSERT_EQ(read(follower).record->beat, 70u);
  }

  /// A wait on a thread of its own, with an hour's patience.
  struct Waiting {
    Waiting(Store& store, const std::optional<Version>& seen, ManualClock& clock)
        : clock_(clock), end_(clock.now() + 1h), thread_([this, &store, seen](std::stop_token stop) {
            store.await_change(seen, {clock_, end_, stop});
            over_ = true;
          }) {}

    /// Until it sleeps, and for how long it means to.
    bool sleeps(Clock::Duration left) {
      return eventually([&] { return clock_.next_alarm() == clock_.now() + left; });
    }
    bool sleeps() { return sleeps(end_ - clock_.now()); }
    bool over() const { return over_; }

    /// Until it sleeps to its end. Before, it may look again at some moments.
    bool sleeps_after_looks() {
      int moments = 5;
      return eventually([&] {
        if (clock_.next_alarm() == clock_.now() + 1ms && moments-- > 0) clock_.advance(1ms);
        return clock_.next_alarm() == end_;
      });
    }

    /// Until it is over, at most some moments later by its clock.
    bool ends() {
      int moments = 5;
      return eventually([&] {
        if (!over_ && clock_.next_alarm() <= clock_.now() + 1ms && moments-- > 0) clock_.advance(1ms);
        return over_.load();
      });
    }

   private:
    ManualClock& clock_;
    Clock::Time end_;
    std::atomic<bool> over_{false};
    std::jthread thread_;
  };

  /// Whether waiting ends because of what happens.
  bool ends(const std::function<void()>& happens) {
    Waiting waiting(follower, seen, clock);
    EXPECT_TRUE(waiting.sleeps());
    happens();
    return waiting.ends();
  }

  void release() {
    auto last = record(7, 71);
    last.released = true;
    ASSERT_TRUE(swap(holder, version(7, {70}), last));
  }
};

/// Whether an inotify instance of this process watches what stands at the path.
bool watched(const fs::path& path) {
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0) return false;
  std::ostringstream inode;
  inode << " ino:" << std::hex << now.st_ino << ' ';
  for (const auto& entry : fs::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);)
      if (line.starts_with("inotify ") && line.find(inode.str()) != line.npos) return true;
  }
  return false;
}

TEST_F(FileAwait, ALinkInTheNewestsPlaceIsNotFollowed) {
  const Scratch elsewhere;
  const fs::path file = elsewhere.file("file", "x");
  fs::create_symlink(file, directory / "8");
  const auto newest = read(follower).record;
  ASSERT_TRUE(newest);
  Waiting waiting(follower, Version{newest->token, newest->beat}, clock);
  EXPECT_TRUE(waiting.sleeps());
  EXPECT_TRUE(watched(directory));
  EXPECT_FALSE(watched(file));
}

TEST_F(FileAwait, AReleaseEndsTheWait) {
  EXPECT_TRUE(ends([&] { release(); }));
}

TEST_F(FileAwait, AReleaseBeforeTheWaitEndsIt) {
  release();
  EXPECT_TRUE(Waiting(follower, seen, clock).ends());
}

TEST_F(FileAwait, AStopEndsTheWait) {
  Waiting waiting(follower, seen, clock);
  EXPECT_TRUE(waiting.sleeps());
}  // or this would not return

TEST_F(FileAwait, TheLimitEndsTheWait) {
  Waiting waiting(follower, seen, clock);
  EXPECT_TRUE(waiting.sleeps());
  clock.advance(1h);
  EXPECT_TRUE(waiting.ends());
}

TEST_F(FileAwait, ANewTenureEndsTheWait) {
  Store other{base, "jobs"};
  EXPECT_TRUE(ends([&] { ASSERT_TRUE(swap(other, version(7, {70}), record(8, 80))); }));
}

TEST_F(FileAwait, ADeadHolderEndsTheWait) {
  release();
  Child dies([&] {
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, version(7, {71}), record(8, 80)));
    Child::ready_and_sleep();
  });
  ASSERT_TRUE(dies.await_ready());
  ASSERT_FALSE(read(follower).record->released);
  seen = {{8}, 80};
  EXPECT_TRUE(ends([&] { dies.kill(); }));
  EXPECT_TRUE(read(follower).record->released);
}

TEST_F(FileAwait, ADeletedFileEndsTheWait) {
  EXPECT_TRUE(ends([&] { fs::remove(directory / "1"); }));
}

TEST_F(FileAwait, ADeletedDirectoryEndsTheWait) {
  EXPECT_TRUE(ends([&] { fs::remove_all(directory); }));
}

TEST_F(FileAwait, AReplacedDirectoryEndsTheWait) {
  EXPECT_TRUE(ends([&] { fs::rename(directory, base / "old"); }));
}

TEST_F(FileAwait, TheFirstTenureEndsTheWait) {
  made(base / "other");
  Store a{base, "other"}, b{base, "other"};
  Waiting waiting(a, std::nullopt, clock);
  EXPECT_TRUE(waiting.sleeps());
  ASSERT_TRUE(swap(b, std::nullopt, record(7, 70)));
  EXPECT_TRUE(waiting.ends());
}

// The event of a closing file comes before its lock is free. Here the event is a stranger's, and the lock goes without.
TEST_F(FileAwait, AfterAFileIsClosedTheWaitLooksAgainSoon) {
  release();
  ASSERT_TRUE(read(follower).record->released);
  const auto path = directory / "2";
  struct stat now {};
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::fstat(fd, &now), 0);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const auto image = *encode(record(8, 80), "jobs", {boot, 0, {now.st_dev, now.st_ino}});
  ASSERT_EQ(::pwrite(fd, &image, sizeof image, 0), static_cast<ssize_t>(sizeof image));
  struct flock whole {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(fd, F_OFD_SETLK, &whole), 0);
  seen = {{8}, 80};
  ASSERT_FALSE(read(follower).record->released);

  Waiting waiting(follower, seen, clock);
  ASSERT_TRUE(waiting.sleeps());
  ::close(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  for (int look = 0; look < 3; ++look) {
    ASSERT_TRUE(waiting.sleeps(1ms)) << look;
    clock.advance(1ms);
  }
  ASSERT_TRUE(waiting.sleeps(1ms));
  whole.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(fd, F_OFD_SETLK, &whole), 0);
  clock.advance(1ms);
  EXPECT_TRUE(eventually([&] { return waiting.over(); }));
  ::close(fd);
}

TEST_F(FileAwait, AfterAFileIsClosedInVainTheWaitSleepsAgain) {
  Waiting waiting(follower, seen, clock);
  ASSERT_TRUE(waiting.sleeps());
  ::close(::open((directory / "1").c_str(), O_WRONLY | O_CLOEXEC));
  for (int look = 0; look < 5; ++look) {
    ASSERT_TRUE(waiting.sleeps(1ms)) << look;
    clock.advance(1ms);
  }
  EXPECT_TRUE(waiting.sleeps());
}

// Whether nothing wakes it can only be told by something that does: the looks are counted up to there.
TEST_F(FileAwait, RenewalsDoNotEndTheWait) {
  Waiting waiting(follower, seen, clock);
  ASSERT_TRUE(waiting.sleeps());
  const int before = looks;
  constexpr int renewals = 50;
  for (std::uint64_t beat = 71; beat < 71 + renewals; ++beat)
    ASSERT_TRUE(swap(holder, version(7, {beat - 1}), record(7, beat)));
  std::ofstream(directory / "stranger") << "x";
  EXPECT_TRUE(eventually([&] { return looks > before; }));
  EXPECT_LE(looks - before, 2) << "of 50 renewals, none; of a new name, one";
  EXPECT_TRUE(waiting.sleeps());
}

TEST_F(FileAwait, AReleaseThatWasReadDoesNotEndTheWait) {
  release();
  ASSERT_TRUE(read(follower).record->released);
  Waiting waiting(follower, seen, clock);
  EXPECT_TRUE(waiting.sleeps());
  EXPECT_FALSE(waiting.over());
}

TEST_F(FileAwait, ManyWaitWithOneInstance) {
  const auto instances = [] {
    std::size_t found = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      found += fs::read_symlink(entry, gone).string() == "anon_inode:inotify";
    }
    return found;
  };
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<Waiting>> waiting;
  for (int i = 0; i < 8; ++i) {
    auto& store = *stores.emplace_back(std::make_unique<Store>(base, "jobs"));
    ASSERT_TRUE(read(store).record);
    waiting.push_back(std::make_unique<Waiting>(store, seen, clock));
  }
  ASSERT_TRUE(clock.await_parked(8));
  EXPECT_EQ(instances(), 1u);
  release();
  for (auto& each : waiting) EXPECT_TRUE(each->ends());
  waiting.clear();
  stores.clear();
  EXPECT_EQ(instances(), 0u) << "and it goes with the last of them";
}

bool the_watchers_thread_runs() {
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::string name;
    if (std::ifstream(task.path() / "comm") >> name && name == "tenure-watch") return true;
  }
  return false;
}

/// A program that daemonises while a store waits. Whatever it opens next gets our numbers.
struct FileAwaitDaemon : FileAwait {
  static constexpr int most = 16;
  std::unique_ptr<Store> waits;

  /// In a child, which alone may lose its descriptors.
  void daemonise(const std::function<int()>& open) {
    made(base / "other");
    waits = std::make_unique<Store>(base, "other");
    {
      Waiting waiting(*waits, std::nullopt, clock);
      ASSERT_TRUE(waiting.sleeps());
    }
    close_all_from(3);
    for (int fd = 3; fd < 3 + most; ++fd) ASSERT_EQ(open(), fd);
  }

  /// What the watcher's thread sleeps in then cannot be woken.
  void expect_that_the_store_goes_at_once() {
    static std::atomic<bool> gone{false};  // outlives a thread that hangs
    std::thread([store = std::move(waits)]() mutable {
      store.reset();
      gone = true;
    }).detach();
    EXPECT_TRUE(eventually([] { return gone.load(); })) << "it waits for a thread that nothing wakes";
  }
};

TEST_F(FileAwaitDaemon, WritesToNoDescriptorOfTheProgramAndClosesNone) {
  for (const bool woken : {false, true}) {
    SCOPED_TRACE(woken ? "an event wakes the watcher's thread" : "it sleeps");
    in_child([&] {
      daemonise([] { return ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); });
      if (woken) {  // and finds the program's, which can be read
        std::ofstream(base / "other/stranger") << "x";
        EXPECT_TRUE(eventually([] { return !the_watchers_thread_runs(); }));
      }
      expect_that_the_store_goes_at_once();
      for (int fd = 3; fd < 3 + most; ++fd) {
        std::uint64_t count = 0;
        EXPECT_EQ(::read(fd, &count, sizeof count), ssize_t{sizeof count}) << "closed one of the program's";
        EXPECT_EQ(count, 1u) << "written to one of the program's";
      }
    });
  }
}

TEST_F(FileAwaitDaemon, TakesNoWatchFromAnInotifyInstanceOfTheProgram) {
  in_child([&] {
    constexpr int watches = 4;
    daemonise([&] {
      const int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
      for (int i = 0; i < watches; ++i) {
        const auto watched = base / std::to_string(i);
        std::ofstream(watched, std::ios::app);
        EXPECT_GT(::inotify_add_watch(fd, watched.c_str(), IN_MODIFY), 0);
      }
      return fd;
    });
    expect_that_the_store_goes_at_once();
    for (int fd = 3; fd < 3 + most; ++fd)
      for (int watch = 1; watch <= watches; ++watch) EXPECT_EQ(::inotify_rm_watch(fd, watch), 0) << fd << " " << watch;
  });
}

TEST_F(FileAwaitDaemon, WaitsAnewAndIsWoken) {
  in_child([&] {
    daemonise([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    Store leads{base, "other"};
    Waiting waiting(*waits, std::nullopt, clock);
    EXPECT_TRUE(waiting.sleeps_after_looks());
    ASSERT_TRUE(swap(leads, std::nullopt, record(7, 70)));
    EXPECT_TRUE(waiting.ends());
    expect_that_the_store_goes_at_once();
  });
}

// The user has no inotify instance left.
TEST_F(FileAwait, WithoutInotifyTheWaitLooksAtIntervals) {
  in_child(
      [&] {
        Store leads{base, "other"}, waits{base, "other"};
        ASSERT_TRUE(swap(leads, std::nullopt, record(7, 70)));
        ASSERT_TRUE(read(waits).record);
        const bool limited =
            ::unshare(CLONE_NEWUSER) == 0 && (std::ofstream("/proc/sys/user/max_inotify_instances") << 0 << std::flush);
        if (!limited || ::inotify_init1(IN_CLOEXEC) >= 0) ::_exit(cannot);
        Waiting waiting(waits, seen, clock);
        for (int i = 0; i < 3; ++i) {
          ASSERT_TRUE(waiting.sleeps(poll_interval));
          clock.advance(poll_interval);
        }
        ASSERT_TRUE(waiting.sleeps(poll_interval));
        auto last = record(7, 71);
        last.released = true;
        ASSERT_TRUE(swap(leads, version(7, {70}), last));
        clock.advance(poll_interval);
        EXPECT_TRUE(eventually([&] { return waiting.over(); }));
      },
      "no user namespace to limit inotify instances in");
}

}  // namespace
}  // namespace tenure::file
