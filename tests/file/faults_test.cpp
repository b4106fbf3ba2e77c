// SPDX-License-Identifier: Apache-2.0
// Goal: what befalls files, directories, descriptors and processes makes no two leaders, lowers no token, and
// ends. Method: the real thing: processes killed and forked, file systems mounted in a child's own namespace,
// files broken by hand. What needs a privilege that is missing is skipped, with the reason.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstring>
#include <tenure/file.hpp>
#include <tenure/lock_table.hpp>

#include "no_descriptors.hpp"
#include "refusal.hpp"
#include "store.hpp"
#include "support.hpp"

namespace tenure::file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FileFaults : ::testing::Test {
  Scratch base;
  fs::path directory = made(base / "jobs");

  static void must(bool done, const char* what) {
    if (!done) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  }

  /// In a child: mounts that nobody else sees, and that end with it.
  static void own_mounts() {
    must(::unshare(CLONE_NEWNS) == 0, "unshare");
    must(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "make private");
  }
  static void mount_tmpfs(const fs::path& at, const char* options) {
    must(::mount("tenure-test", at.c_str(), "tmpfs", 0, options) == 0, "mount tmpfs");
  }

  void overwrite(const std::string& name, const std::string& content) const {
    std::ofstream(directory / name, std::ios::binary | std::ios::trunc) << content;
  }
};

/// Why own_mounts() cannot work here; empty if it can.
std::string no_own_mounts() {
  Child tries([] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(errno);
  });
  const int status = tries.end();
  if (status == 0) return {};
  return std::string("no mounts of one's own (") + std::strerror(WEXITSTATUS(status)) +
         "): that takes root with CAP_SYS_ADMIN, and no chroot";
}

/// One that leads with beat 70, and another one.
struct FileLed : FileFaults {
  Store leader{base, "jobs"}, other{base, "jobs"};
  void SetUp() override { ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70))); }
  bool renews(std::uint64_t from, std::uint64_t to) { return swap(leader, version(7, {from}), record(7, to)); }
};

#define NEEDS_OWN_MOUNTS() \
  if (const auto why = no_own_mounts(); !why.empty()) GTEST_SKIP() << why

// ---- Processes

struct FileFaultsAt : FileFaults, ::testing::WithParamInterface<Step> {};

// Killed in the midst of a claim: nothing is left, or a tenure whose holder is known to be dead.
TEST_P(FileFaultsAt, AKilledClaimHoldsUpNobody) {
  Child dies([&] {
    Store store{base, "jobs", [](Step step) {
                  if (step == GetParam()) ::kill(::getpid(), SIGKILL);
                }};
    swap(store, std::nullopt, record(7, 70));
  });
  EXPECT_EQ(WTERMSIG(dies.end()), SIGKILL);
  Store next{base, "jobs"};
  const auto found = read(next);
  EXPECT_EQ(found.record.has_value(), GetParam() >= Step::linked);
  std::optional<Expected> expected;
  if (found.record) {
    EXPECT_TRUE(found.record->released);
    expected = version(7, {found.record->beat});
  }
  EXPECT_TRUE(swap(next, expected, record(8, 80)));
  EXPECT_EQ(names(directory).size(), 1u);
}

// Stopped for ever in the midst of a claim: it has nothing locked that others need.
TEST_P(FileFaultsAt, AStoppedClaimHoldsUpNobody) {
  Child stops([&] {
    Store store{base, "jobs", [](Step step) {
                  if (step == GetParam()) Child::ready_and_sleep();
                }};
    swap(store, std::nullopt, record(7, 70));
  });
  ASSERT_TRUE(stops.await_ready());
  Store next{base, "jobs"};
  const auto found = read(next);
  std::optional<Expected> expected;
  if (found.record) expected = version(7, {found.record->beat});
  EXPECT_TRUE(swap(next, expected, record(8, 80)));
  EXPECT_FALSE(read(next).record->released);
}

INSTANTIATE_TEST_SUITE_P(Steps, FileFaultsAt,
                         ::testing::Values(Step::compared, Step::locked, Step::linked, Step::listed, Step::synced));

TEST_F(FileFaults, AKilledHolderIsKnownToBeDeadAtOnce) {
  Child holder([&] {
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
    Child::ready_and_sleep();
  });
  ASSERT_TRUE(holder.await_ready());
  Store next{base, "jobs"};
  EXPECT_FALSE(read(next).record->released);
  ::kill(holder.pid(), SIGSTOP);
  EXPECT_FALSE(read(next).record->released) << "stopped is not dead";
  holder.kill();
  EXPECT_TRUE(read(next).record->released);
  EXPECT_TRUE(swap(next, version(7, {70}), record(8, 80)));
}

// Whoever may only read the file can lock it for reading. One who waits for that gets it in the moment of the death.
TEST_F(FileFaults, AReadersLockDoesNotMakeADeadHolderLookAlive) {
  Child holder([&] {
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
    Child::ready_and_sleep();
  });
  ASSERT_TRUE(holder.await_ready());
  const int reader = ::open((directory / "1").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  Store next{base, "jobs"};
  holder.kill();
  struct flock whole {};
  whole.l_type = F_RDLCK;
  EXPECT_EQ(::fcntl(reader, F_OFD_SETLK, &whole), 0);
  EXPECT_TRUE(read(next).record->released);
  EXPECT_TRUE(swap(next, version(7, {70}), record(8, 80)));
  ::close(reader);
}

// A child of a holder outlives it: it must not keep its lock.
TEST_F(FileFaults, AForkedChildDoesNotHoldOnForItsParent) {
  Child holder([&] {
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
    if (::fork() == 0) {
      ::close(STDERR_FILENO);
      Child::ready();
      for (;;) ::pause();
    }
    for (;;) ::pause();
  });
  ASSERT_TRUE(holder.await_ready());
  // The grandchild is found by its parent, to be ended with the test.
  pid_t grandchild = 0;
  std::ifstream("/proc/" + std::to_string(holder.pid()) + "/task/" + std::to_string(holder.pid()) + "/children") >>
      grandchild;
  Store next{base, "jobs"};
  EXPECT_FALSE(read(next).record->released);
  holder.kill();
  EXPECT_TRUE(read(next).record->released);
  if (grandchild > 0) ::kill(grandchild, SIGKILL);
}

TEST_F(FileFaults, AForkedChildHasNoPartInItsParentsElection) {
  Store store{base, "jobs"};
  ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
  in_child([&] {
    EXPECT_THAT(error_of(store.read(within(1s))).message, HasSubstr("forked"));
    error_of(store.compare_and_set(version(7, {70}), record(7, 71), within(1s)));
    EXPECT_TRUE(store.request_step_down({{7}, "", ""}, within(1s)));
    const auto limit = within(10ms);
    store.await_change(std::nullopt, limit);
    EXPECT_TRUE(limit.passed()) << "there is nothing to wait for, and no hot loop either";
    Store own{base, "jobs"};
    EXPECT_FALSE(read(own).record->released);
    EXPECT_FALSE(swap(own, std::nullopt, record(8, 80)));
  });
  EXPECT_FALSE(read(store).record->released);
  EXPECT_TRUE(swap(store, version(7, {70}), record(7, 71)));
}

TEST_F(FileFaults, AProgramStartedByTheHolderInheritsNothing) {
  Store store{base, "jobs"};
  ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
  EXPECT_NE(std::system(("ls -l /proc/self/fd | grep -q " + base.path().string()).c_str()), 0);
}

TEST_F(FileFaults, AnotherTimeNamespaceIsAnotherClock) {
  NEEDS_OWN_MOUNTS();
  Child holder([&] {
    if (::unshare(CLONE_NEWTIME) != 0) ::_exit(cannot);
    std::ofstream("/proc/self/timens_offsets") << "boottime 1000000 0\n";
    const pid_t inside = ::fork();  // the namespace holds for children
    if (inside != 0) {
      int status = 0;
      ::waitpid(inside, &status, 0);
      ::_exit(WEXITSTATUS(status));
    }
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
    ::raise(SIGKILL);
  });
  if (WEXITSTATUS(holder.end()) == cannot) GTEST_SKIP() << "no time namespaces here";
  Store other{base, "jobs"};
  const auto found = read(other);
  ASSERT_TRUE(found.record);
  EXPECT_FALSE(found.same_clock);
  EXPECT_TRUE(found.record->released) << "its death is known all the same";
}

// ---- Descriptors

TEST_F(FileFaults, ALeaderNeedsNoNewDescriptor) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  in_child([&] {
    Store leader{base, "jobs"}, other{base, "jobs"};
    ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70)));
    const test::NoDescriptors none;
    EXPECT_TRUE(swap(leader, version(7, {70}), record(7, 71)));
    EXPECT_THAT(error_of(other.read(within(1s))).message, HasSubstr("ulimit -n"));
    EXPECT_TRUE(swap(leader, version(7, {71}), record(7, 72)));
    auto last = record(7, 73);
    last.released = true;
    EXPECT_TRUE(swap(leader, version(7, {72}), last));
  });
}

/// It knows that its own tenure is over, and nothing else.
TEST_F(FileFaults, AFormerLeaderThatMayNotLookIsNotToldThatTheStoreLostData) {
  in_child(
      [&] {
        Store leader{base, "jobs"};
        ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70)));
        fs::permissions(directory, fs::perms::none);
        if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(cannot);
        ManualClock later(boot_clock().now() + 1h);
        const auto refused =
            value(leader.compare_and_set(version(7, {70}), record(7, 71), {later, later.now() + 1s, {}}));
        EXPECT_FALSE(refused.applied);
        ASSERT_TRUE(refused.found.record);
        EXPECT_EQ(refused.found.record->token, Token{7});
        EXPECT_TRUE(refused.found.record->released);
      },
      "this root may not become another user");
  fs::permissions(directory, fs::perms::owner_all);
}

TEST_F(FileFaults, AHolderWhoseDescriptorsWereClosedKnows) {
  in_child([&] {
    Store leader{base, "jobs"}, other{base, "jobs"};
    ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70)));
    close_all_from(3);
    // Whatever the program opens next gets our numbers.
    const auto bystander = (base / "bystander").string();
    constexpr int most = 16;
    for (int i = 0; i < most; ++i) ASSERT_EQ(::open(bystander.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), 3 + i);
    EXPECT_FALSE(swap(leader, version(7, {70}), record(7, 71)));
    EXPECT_EQ(fs::file_size(bystander), 0u) << "written into a file of the program's";
    EXPECT_TRUE(read(other).record->released);
    EXPECT_TRUE(swap(leader, version(7, {70}), record(8, 80))) << "and it may lead anew";
    for (int fd = 3; fd < 3 + most; ++fd)
      EXPECT_EQ(fs::read_symlink("/proc/self/fd/" + std::to_string(fd)), bystander) << "closed one of the program's";
  });
}

/// Its lock is free, so a successor leads at once: the next renewal must not leave it in doubt.
TEST_F(FileFaults, ALeaderWhoseDescriptorsWereClosedLeadsNoMoreAfterItsNextRenewal) {
  in_child([&] {
    ManualClock clock;
    const auto backend = lock_table(std::make_shared<Store>(base, "jobs"), "jobs");
    ASSERT_EQ(backend->accepts(Timing::of(10s)), std::nullopt);
    const auto token = std::get<Granted>(backend->acquire(within(1s, clock))).token;
    close_all_from(3);
    EXPECT_TRUE(std::holds_alternative<Denied>(backend->renew(token, within(1s, clock))));
    const auto again = backend->acquire(within(1s, clock));
    ASSERT_TRUE(std::holds_alternative<Granted>(again)) << "it may lead anew";
    EXPECT_GT(std::get<Granted>(again).token, token);
  });
}

TEST_F(FileLed, AHolderWhoseFileAloneWasClosedKnows) {
  const auto bystander = (base / "bystander").string();
  const int descriptor = ::open(bystander.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int held = -1;
  for (int fd = 3; fd < 64; ++fd) {
    struct stat now {
    }, file{};
    if (::fstat(fd, &now) == 0 && ::stat((directory / "1").c_str(), &file) == 0 && now.st_ino == file.st_ino) held = fd;
  }
  ASSERT_GE(::dup2(descriptor, held), 0);
  EXPECT_FALSE(renews(70, 71));
  EXPECT_EQ(fs::file_size(bystander), 0u) << "written into a file of the program's";
  EXPECT_GE(::fcntl(held, F_GETFD), 0) << "closed a file of the program's";
  ::close(held);
  ::close(descriptor);
}

// ---- Files and directories

TEST_F(FileLed, AHolderKnowsWhenItsFileIsDeleted) {
  fs::remove(directory / "1");
  EXPECT_FALSE(renews(70, 71));
  EXPECT_FALSE(read(other).record);
}

TEST_F(FileLed, AHolderKnowsWhenTheDirectoryIsDeleted) {
  fs::remove_all(directory);
  EXPECT_FALSE(renews(70, 71));
  EXPECT_TRUE(swap(other, std::nullopt, record(8, 80))) << "made anew";
  EXPECT_FALSE(swap(leader, version(7, {70, 71}), record(7, 72)));
  EXPECT_EQ(read(leader).record->token, Token{8});
}

TEST_F(FileLed, AHolderKnowsWhenAnotherDirectoryStandsThere) {
  fs::rename(directory, base / "old");
  EXPECT_TRUE(swap(other, std::nullopt, record(8, 80)));
  EXPECT_FALSE(renews(70, 71));
}

TEST_F(FileLed, AHolderKnowsWhenItsFileIsReplaced) {
  fs::copy_file(directory / "1", directory / "copy");
  fs::rename(directory / "copy", directory / "1");
  const auto found = read(other);
  ASSERT_TRUE(found.record);
  EXPECT_FALSE(found.record->released) << "a copy has no lock: that says nothing of the holder";
  EXPECT_FALSE(found.same_clock);
  EXPECT_FALSE(renews(70, 71));
}

// A second name keeps the holder's file alive: it is not gone, but it is not the newest any more.
TEST_F(FileLed, AHolderKnowsWhenAnotherFileHasItsNumber) {
  fs::create_hard_link(directory / "1", base / "kept");
  fs::copy_file(directory / "1", directory / "copy");
  fs::rename(directory / "copy", directory / "1");
  EXPECT_FALSE(renews(70, 71));
}

struct FileBroken : FileFaults, ::testing::WithParamInterface<const char*> {};

TEST_P(FileBroken, AnUnreadableNewestCountsAsWhatItWas) {
  Store other{base, "jobs"};
  overwrite("5", GetParam());
  const auto found = read(other);
  EXPECT_TRUE(found.unreadable);
  ASSERT_TRUE(found.record);
  EXPECT_FALSE(found.record->released);
  EXPECT_FALSE(found.same_clock);
  EXPECT_EQ(read(other).record, found.record) << "as long as it stands unchanged";
  const auto expected = version(found.record->token.value, {found.record->beat});
  EXPECT_FALSE(swap(other, std::nullopt, record(7, 70)));
  EXPECT_TRUE(swap(other, expected, record(7, 70)));
  EXPECT_THAT(names(directory), ElementsAre("6"));
}

INSTANTIATE_TEST_SUITE_P(By, FileBroken, ::testing::Values("", "garbage", "tenure1\n"));

// Truncated under its holder, who goes on: it is seen to live. When it dies, one observed term decides.
TEST_F(FileLed, ATruncatedFileOfALivingHolderChangesWithEveryRenewal) {
  fs::resize_file(directory / "1", 0);
  const auto before = read(other);
  EXPECT_TRUE(before.unreadable);
  EXPECT_TRUE(renews(70, 71));
  const auto after = read(other);
  EXPECT_TRUE(after.unreadable);
  EXPECT_NE(before.record->beat, after.record->beat);
  EXPECT_FALSE(swap(other, version(before.record->token.value, {before.record->beat}), record(8, 80)));
}

TEST_F(FileFaults, AfterABrokenFileTheTokenIsAboveEverythingSeen) {
  ManualClock clock;
  const auto backend = lock_table(std::make_shared<Store>(base, "jobs"), "jobs");
  ASSERT_EQ(backend->accepts(Timing::of(1s)), std::nullopt);
  const auto first = std::get<Granted>(backend->acquire(within(1s, clock))).token;
  ASSERT_EQ(backend->release(within(1s, clock)), std::nullopt);
  overwrite("2", "torn");
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->acquire(within(1s, clock))));
  clock.advance(1s - 1ns);
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->acquire(within(1s, clock))));
  clock.advance(1ns);
  const auto next = backend->acquire(within(1s, clock));
  ASSERT_TRUE(std::holds_alternative<Granted>(next)) << "one observed term";
  EXPECT_GT(std::get<Granted>(next).token, first);
}

TEST_F(FileFaults, ANewestThatIsNoFileCountsAsUnreadable) {
  Store other{base, "jobs"};
  fs::create_symlink("/etc/passwd", directory / "3");
  EXPECT_TRUE(read(other).unreadable);
  fs::create_directory(directory / "4");
  EXPECT_TRUE(read(other).unreadable);
  ASSERT_EQ(::mkfifo((directory / "5").c_str(), 0600), 0);
  const auto found = read(other);
  EXPECT_TRUE(found.unreadable);
  EXPECT_TRUE(swap(other, version(5, {found.record->beat}), record(7, 70)));
}

TEST_F(FileLed, AnotherFormatIsRefusedAndSaysSo) {
  const std::uint32_t version_two = 2;
  std::fstream(directory / "1", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(offsetof(Image, version))
      .write(reinterpret_cast<const char*>(&version_two), sizeof version_two);
  EXPECT_EQ(error_of(other.read(within(1s))).fault, Fault::corrupt);
  EXPECT_THAT(error_of(other.read(within(1s))).message, HasSubstr("format 2"));
  error_of(other.compare_and_set(version(7, {70}), record(8, 80), within(1s)));
}

TEST_F(FileFaults, AnotherElectionsFileIsRefused) {
  Store leader{base, "jobs"}, other{base, "other"};
  ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70)));
  made(base / "other");
  fs::copy_file(directory / "1", base / "other/1");
  EXPECT_THAT(error_of(other.read(within(1s))).message, HasSubstr("belongs to the election \"jobs\""));
}

/// A file as a holder elsewhere would have left it; its lock is free here.
struct Elsewhere {
  const char* name;
  void (*change)(Origin&);
  bool released, same_clock;  ///< What may be believed.
  friend void PrintTo(const Elsewhere& e, std::ostream* out) { *out << e.name; }
};
struct FileElsewhere : FileFaults, ::testing::WithParamInterface<Elsewhere> {};

TEST_P(FileElsewhere, SaysByItsLockAndClockOnlyWhatItCan) {
  Store other{base, "jobs"};
  const auto path = directory / "1";
  std::ofstream out(path, std::ios::binary);
  struct stat now {
  }, clock{};
  must(::stat(path.c_str(), &now) == 0, "stat");
  must(::stat("/proc/self/ns/time", &clock) == 0, "stat");
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  Origin origin{boot, clock.st_ino, {now.st_dev, now.st_ino}};
  GetParam().change(origin);
  const auto image = *encode(record(7, 70), "jobs", origin);
  out.write(reinterpret_cast<const char*>(&image), sizeof image).flush();
  const auto found = read(other);
  EXPECT_EQ(found.record->released, GetParam().released);
  EXPECT_EQ(found.same_clock, GetParam().same_clock);
}

INSTANTIATE_TEST_SUITE_P(
    From, FileElsewhere,
    ::testing::Values(Elsewhere{"AFreeLockHere", [](Origin&) {}, true, true},
                      Elsewhere{"AnotherBoot", [](Origin& o) { o.boot_id[0] = o.boot_id[0] == 'x' ? 'y' : 'x'; }, false,
                                false},
                      Elsewhere{"AnotherDevice", [](Origin& o) { ++o.file.device; }, false, true},
                      Elsewhere{"AnotherInode", [](Origin& o) { ++o.file.inode; }, false, false},
                      Elsewhere{"AnotherTimeNamespace", [](Origin& o) { ++o.time_namespace; }, true, false}),
    [](const auto& that) { return std::string(that.param.name); });

// ---- File systems

TEST_F(FileFaults, AFullDiskFailsTheClaimAndNotTheLeader) {
  NEEDS_OWN_MOUNTS();
  in_child([&] {
    own_mounts();
    mount_tmpfs(base, "size=64k,mode=0700");
    Store leader{base, "jobs"}, other{base, "jobs"};
    ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70)));
    std::ofstream filling(base / "filling");
    while (filling << std::string(4096, 'x') << std::flush) {
    }
    EXPECT_TRUE(swap(leader, version(7, {70}), record(7, 71)));
    EXPECT_FALSE(read(other).record->released);
    const auto failed = other.compare_and_set(version(7, {71}), record(8, 80), within(1s));
    EXPECT_THAT(error_of(failed).message, HasSubstr("free some space"));
    EXPECT_THAT(names(directory), ElementsAre("1"));
    EXPECT_TRUE(swap(leader, version(7, {71}), record(7, 72)));
    filling.close();
    fs::remove(base / "filling");
    EXPECT_TRUE(swap(other, version(7, {72}), record(8, 80)));
  });
}

TEST_F(FileFaults, ADiskWithoutInodesFailsTheClaimAndNotTheLeader) {
  NEEDS_OWN_MOUNTS();
  in_child([&] {
    own_mounts();
    mount_tmpfs(base, "nr_inodes=6,mode=0700");
    Store leader{base, "jobs"}, other{base, "jobs"};
    ASSERT_TRUE(swap(leader, std::nullopt, record(7, 70)));
    for (int i = 0; i < 8; ++i) std::ofstream(base / std::to_string(i)) << "x";
    EXPECT_TRUE(swap(leader, version(7, {70}), record(7, 71)));
    error_of(other.compare_and_set(version(7, {71}), record(8, 80), within(1s)));
    EXPECT_TRUE(swap(leader, version(7, {71}), record(7, 72)));
  });
}

TEST_F(FileLed, AReadOnlyFileSystemFailsTheClaimAndIsObserved) {
  NEEDS_OWN_MOUNTS();
  in_child([&] {
    own_mounts();
    must(::mount(base.path().c_str(), base.path().c_str(), nullptr, MS_BIND, nullptr) == 0, "bind");
    must(::mount(nullptr, base.path().c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0, "read-only");
    Store theirs{base, "jobs"};
    EXPECT_FALSE(read(theirs).record->released);
    const auto failed = theirs.compare_and_set(version(7, {70}), record(8, 80), within(1s));
    EXPECT_EQ(error_of(failed).fault, Fault::forbidden);
  });
}

TEST_F(FileLed, AReadOnlyDirectoryFailsTheClaimAndNotTheLeader) {
  NEEDS_OWN_MOUNTS();
  ASSERT_EQ(::chmod(base.path().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(directory.c_str(), 0555), 0);
  ASSERT_EQ(::chmod((directory / "1").c_str(), 0644), 0);
  EXPECT_TRUE(renews(70, 71));
  in_child([&] {
    must(::setresuid(1001, 1001, 1001) == 0, "become another user");
    Store theirs{base, "jobs"};
    EXPECT_EQ(read(theirs).record->beat, 71u);
    const auto failed = theirs.compare_and_set(version(7, {71}), record(8, 80), within(1s));
    EXPECT_EQ(error_of(failed).fault, Fault::forbidden);
    EXPECT_THAT(error_of(failed).message, HasSubstr("a candidate needs to read and write"));
  });
  ASSERT_EQ(::chmod(directory.c_str(), 0755), 0);
}

// The same directory seen through an overlayfs: its locks are others, and both sides see each other's as free.
TEST_F(FileFaults, AnOverlayAndWhatIsBelowItAreTwoPlaces) {
  NEEDS_OWN_MOUNTS();
  in_child(
      [&] {
        own_mounts();
        mount_tmpfs(base, "mode=0700");
        for (const auto* name : {"lower", "upper", "work", "merged"}) fs::create_directory(base / name);
        fs::permissions(base / "upper", fs::perms::owner_all);
        fs::permissions(base / "merged", fs::perms::owner_all);
        const auto options = "lowerdir=" + (base / "lower").string() + ",upperdir=" + (base / "upper").string() +
                             ",workdir=" + (base / "work").string();
        if (::mount("tenure-test", (base / "merged").c_str(), "overlay", 0, options.c_str()) != 0) ::_exit(cannot);
        Store above{base / "merged", "jobs"}, beside{base / "merged", "jobs"}, below{base / "upper", "jobs"};
        ASSERT_TRUE(swap(above, std::nullopt, record(7, 70)));
        EXPECT_FALSE(read(beside).record->released);
        ASSERT_TRUE(read(below).record);
        EXPECT_FALSE(read(below).record->released) << "two leaders";
        EXPECT_TRUE(swap(above, version(7, {70}), record(7, 71)));
        EXPECT_EQ(read(below).record->beat, 71u);
        auto last = record(7, 72);
        last.released = true;
        EXPECT_TRUE(swap(above, version(7, {71}), last));
        ASSERT_TRUE(swap(below, version(7, {72}), record(8, 80)));
        EXPECT_FALSE(read(above).record->released) << "two leaders";
      },
      "no overlayfs here");
}

TEST_F(FileFaults, AFileSystemThatIsNotKnownToBeLocalIsRefused) {
  NEEDS_OWN_MOUNTS();
  in_child(
      [&] {
        own_mounts();
        if (::mount("tenure-test", base.path().c_str(), "hugetlbfs", 0, "mode=0700") != 0) ::_exit(cannot);
        EXPECT_THAT(tenure::test::refusal_of([&] { const Store refused(base, "jobs"); }),
                    HasSubstr("not known to be local"));
      },
      "no such file system here");
}

TEST_F(FileLed, ABindMountedDirectoryIsTheSameElection) {
  NEEDS_OWN_MOUNTS();
  Scratch elsewhere;
  in_child([&] {
    own_mounts();
    must(::mount(base.path().c_str(), elsewhere.path().c_str(), nullptr, MS_BIND, nullptr) == 0, "bind");
    Store theirs{elsewhere, "jobs"};
    const auto found = read(theirs);
    EXPECT_FALSE(found.record->released);
    EXPECT_TRUE(found.same_clock);
    EXPECT_FALSE(swap(theirs, std::nullopt, record(8, 80)));
  });
}

}  // namespace
}  // namespace tenure::file
