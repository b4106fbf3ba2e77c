// SPDX-License-Identifier: Apache-2.0
// Which directories an election gets, and which are refused.
#include "directory.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <functional>
#include <thread>

#include "refusal.hpp"
#include "store.hpp"
#include "support.hpp"

namespace {

/// What happens after a call that names a file: which call, and the last part of the name.
std::function<void(const std::string& call, const std::string& name)> after_call;
std::atomic<bool> unnamed_files{true};

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int told(const char* call, const char* path, int done) {
  const int kept = errno;
  if (after_call) after_call(call, std::filesystem::path(path).filename());
  errno = kept;
  return done;
}

}  // namespace

// They take the places of the C library's.
extern "C" {
int stat(const char* path, struct stat* out) noexcept {
  static const auto there = real<int(const char*, struct stat*)>("stat");
  return told("stat", path, there(path, out));
}
int lstat(const char* path, struct stat* out) noexcept {
  static const auto there = real<int(const char*, struct stat*)>("lstat");
  return told("lstat", path, there(path, out));
}
int fstatat(int at, const char* path, struct stat* out, int flags) noexcept {
  static const auto there = real<int(int, const char*, struct stat*, int)>("fstatat");
  return told("fstatat", path, there(at, path, out, flags));
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto there = real<int(const char*, mode_t)>("mkdir");
  return told("mkdir", path, there(path, mode));
}
int mkdirat(int at, const char* path, mode_t mode) noexcept {
  static const auto there = real<int(int, const char*, mode_t)>("mkdirat");
  return told("mkdir", path, there(at, path, mode));
}
int openat(int at, const char* path, int flags, ...) {
  static const auto there = real<int(int, const char*, int, ...)>("openat");
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);  // garbage where there is none, and then nobody reads it
  va_end(more);
  if (!unnamed_files && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
  return told("openat", path, there(at, path, flags, mode));
}
}

namespace tenure::file {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

unsigned mode_of(const fs::path& path) {
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 ? now.st_mode & 07777 : 0;
}

/// While it lives, this happens after each call that names a file.
struct After {
  template <class Happens>
  explicit After(Happens happens) {
    after_call = std::move(happens);
  }
  ~After() { after_call = nullptr; }
};

/// What an opening or its first claim says.
std::string refusal(const fs::path& base, const std::string& election = "jobs") {
  return tenure::test::refusal_of([&] {
    Store store{base, election};
    const auto claimed = store.compare_and_set(std::nullopt, record(7, 70), within(1s));
    if (!claimed) throw std::invalid_argument(claimed.error().message);
  });
}

TEST(FileDirectory, NamesArePercentEncoded) {
  EXPECT_THAT(encoded("Jobs-1_a.b"), ElementsAre("Jobs-1_a.b"));
  EXPECT_THAT(encoded("a/b%~\n\xff"), ElementsAre("a%2Fb%25%7E%0A%FF"));
  EXPECT_THAT(encoded("."), ElementsAre("%2E"));
  EXPECT_THAT(encoded(".."), ElementsAre("%2E."));
}

TEST(FileDirectory, NamesAreReadBackAndWhatIsNoneIsNot) {
  for (const auto& name : {std::string("Jobs-1_a.b"), std::string("a/b%~\n\xff"), std::string(200, '/'),
                           std::string(200, 'x'), std::string("..")})
    EXPECT_EQ(decoded(encoded(name)), name);
  for (const auto* other : {"%2f", "%2", "%", "%zz", "a b", ".hidden", "a~"}) EXPECT_FALSE(decoded({other})) << other;
}

TEST(FileDirectory, LongElectionNamesAreSplitAndNeverMeet) {
  const auto pieces = encoded(std::string(200, '/'));
  ASSERT_EQ(pieces.size(), 3u);
  std::string whole;
  for (const auto& piece : pieces) {
    EXPECT_LE(piece.size(), 255u);
    EXPECT_EQ(piece.ends_with('~'), &piece != &pieces.back());
    whole += piece.substr(0, piece.find('~'));
  }
  EXPECT_EQ(whole.size(), 600u);
  Scratch base;
  Store longer{base, std::string(200, '/')}, shorter{base, std::string(79, '/')};
  ASSERT_TRUE(swap(longer, std::nullopt, record(7, 70)));
  EXPECT_FALSE(read(shorter).record);
}

// A piece that were "." or ".." would be another directory, and perhaps none of ours.
TEST(FileDirectory, NoPieceOfALongNameIsADotOrTwo) {
  const std::string full = std::string(79, '/') + "x";
  for (const std::string dots : {".", "..", "..."}) {
    const auto pieces = encoded(full + dots);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(pieces.back(), "%2E" + dots.substr(1));
    EXPECT_EQ(decoded(pieces), full + dots);
  }
  Scratch base;
  Store store{base, full + ".."};
  ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
  EXPECT_EQ(names(base).count("1"), 0u) << "it stands where other elections stand";
}

TEST(FileDirectory, NetworkFileSystemsAreRefusedByTheirNumber) {
  EXPECT_FALSE(unfit_file_system(0xEF53));
  EXPECT_FALSE(unfit_file_system(0x01021994));
  for (const auto& [type, number] : {std::pair<std::uint64_t, const char*>{0x6969, "0x6969"},  // NFS
                                     {0xFF534D42, "0xff534d42"},                               // CIFS
                                     {0xFE534D42, "0xfe534d42"},                               // SMB
                                     {0x01021997, "0x1021997"},                                // 9p
                                     {0x65735546, "0x65735546"},                               // FUSE
                                     {0x5346414F, "0x5346414f"},                               // AFS
                                     {0x00C36400, "0xc36400"},                                 // Ceph
                                     {0x0BD00BD0, "0xbd00bd0"},                                // Lustre
                                     {0x12345, "0x12345"}})
    EXPECT_THAT(unfit_file_system(type).value_or(""), testing::AllOf(HasSubstr("type " + std::string(number) + ","),
                                                                     HasSubstr("a directory on a local disk")));
}

TEST(FileDirectory, AMissingDirectoryIsMadeForItsOwner) {
  Scratch scratch;
  Store made{scratch / "base", "jobs"};
  ASSERT_TRUE(swap(made, std::nullopt, record(7, 70)));
  struct stat now {};
  ASSERT_EQ(::stat((scratch / "base/jobs").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat((scratch / "base/jobs/1").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0600u);
  EXPECT_THAT(refusal(scratch / "missing/base"), HasSubstr("name a directory whose parent exists"));
}

TEST(FileDirectory, AGroupKeepsItsRightsWhateverTheUmask) {
  Scratch base;
  ASSERT_EQ(::chmod(base.path().c_str(), 02770), 0);
  for (const mode_t mask : {0u, 022u, 077u, 0177u}) {
    SCOPED_TRACE(mask);
    fs::remove_all(base / "jobs");
    const auto before = ::umask(mask);
    Store made{base, "jobs"};
    const bool claimed = swap(made, std::nullopt, record(7, 70));
    ::umask(before);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(mode_of(base / "jobs"), 02770u);
    EXPECT_EQ(mode_of(base / "jobs/1"), 0640u);
  }
}

// Another process of ours was quicker, between our making the directory and our setting its rights.
TEST(FileDirectory, AGroupKeepsItsRightsWhereTwoProcessesBegin) {
  Scratch base;
  ASSERT_EQ(::chmod(base.path().c_str(), 02770), 0);
  const auto before = ::umask(077);
  std::optional<Store> quicker;
  {
    const After each([&](const std::string& call, const std::string& name) {
      if (call != "mkdir" || name != "jobs" || quicker) return;
      quicker.emplace(base, "jobs");
      EXPECT_TRUE(swap(*quicker, std::nullopt, record(7, 70)));
    });
    EXPECT_EQ(refusal(base), "accepted");
  }
  ::umask(before);
  ASSERT_TRUE(quicker);
  EXPECT_EQ(mode_of(base / "jobs"), 02770u);
}

TEST(FileDirectory, DirectoriesForEverybodyAreRefused) {
  Scratch base;
  ASSERT_EQ(::chmod(base.path().c_str(), 0777), 0);
  EXPECT_THAT(refusal(base), AllOf(HasSubstr("can be written by everybody"), HasSubstr("chmod o-w")));
  ASSERT_EQ(::chmod(base.path().c_str(), 01777), 0);
  EXPECT_EQ(refusal(base), "accepted") << "like /tmp";
  struct stat now {};
  ASSERT_EQ(::stat((base / "jobs").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0700u) << "but for nobody else";
  ASSERT_EQ(::chmod((base / "jobs").c_str(), 01777), 0);
  EXPECT_THAT(refusal(base), HasSubstr("can be written by everybody"));
}

TEST(FileDirectory, DirectoriesOfOthersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  Scratch base;
  ASSERT_EQ(::chown(base.path().c_str(), 12345, 0), 0);
  EXPECT_THAT(refusal(base), AllOf(HasSubstr("belongs to user 12345"), HasSubstr("chown root:GROUP")));
  ASSERT_EQ(::chown(base.path().c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(base.path().c_str(), 01777), 0);
  fs::create_directory(base / "jobs");
  ASSERT_EQ(::chown((base / "jobs").c_str(), 12345, 0), 0);
  EXPECT_THAT(refusal(base), HasSubstr("belongs to user 12345")) << "made by somebody in a directory like /tmp";
}

// In a directory like /tmp others can put something else in the place of what we looked at, before we open it.
TEST(FileDirectory, ADirectoryOfAnothersThatComesAfterALookIsNeverEntered) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  bool changed = true;
  for (int nth = 1; changed; ++nth) {
    SCOPED_TRACE(nth);
    Scratch base;
    const auto ours = base / "jobs", forged = base / "forged";
    ASSERT_EQ(::chmod(base.path().c_str(), 01777), 0);
    fs::create_directory(ours), fs::create_directory(forged);
    ASSERT_EQ(::chown(forged.c_str(), 12345, 0), 0);
    changed = false;
    ElectionDirectory directory(base, "jobs");
    std::optional<Error> refused;
    {
      const After each([&, calls = 0](const std::string&, const std::string& name) mutable {
        if (name != "jobs" || ++calls != nth) return;
        changed = true;
        fs::rename(ours, base / "before");
        fs::rename(forged, ours);
      });
      const auto entered = directory.enter(Missing::is_made);
      if (!entered) refused = entered.error();
    }
    struct stat now {};
    ASSERT_TRUE(refused || ::fstat(directory.get(), &now) == 0);
    EXPECT_TRUE(refused || now.st_uid == 0);
    if (changed && !refused) {
      EXPECT_FALSE(*directory.stands());
    }
    EXPECT_TRUE(changed || nth > 2) << "it looks more than once";
  }
}

// A member of a group that shares the directory may put anything in the place of what we have just made.
TEST(FileDirectory, WhatComesInThePlaceOfADirectoryThatWeMakeKeepsItsRights) {
  Scratch base;
  ASSERT_EQ(::chmod(base.path().c_str(), 02770), 0);
  fs::create_directory(base / "private");
  std::ofstream(base / "private/secret") << "secret";
  ASSERT_EQ(::chmod((base / "private").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((base / "private/secret").c_str(), 0600), 0);
  const auto enter_while = [&](const std::function<void()>& swapped) {
    fs::remove_all(base / "jobs");
    fs::remove_all(base / "before");
    const After each([&, first = true](const std::string& call, const std::string& name) mutable {
      if (call != "mkdir" || name != "jobs" || !std::exchange(first, false)) return;
      fs::rename(base / "jobs", base / "before");
      swapped();
    });
    return !ElectionDirectory(base, "jobs").enter(Missing::is_made);
  };
  const auto before = ::umask(077);
  EXPECT_TRUE(enter_while([&] { fs::create_directory_symlink(base / "private", base / "jobs"); }));
  EXPECT_EQ(mode_of(base / "private"), 0700u);
  EXPECT_TRUE(enter_while([&] { fs::create_hard_link(base / "private/secret", base / "jobs"); }));
  EXPECT_EQ(mode_of(base / "private/secret"), 0600u);
  enter_while([&] { fs::rename(base / "private", base / "jobs"); });
  EXPECT_EQ(mode_of(base / "jobs"), 0700u);
  ::umask(before);
}

// Root's directory, a group's election: the second user finds what the first one made.
TEST(FileDirectory, UsersOfOneGroupShare) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become two users";
  Scratch base;
  ASSERT_EQ(::chown(base.path().c_str(), 0, 54321), 0);
  ASSERT_EQ(::chmod(base.path().c_str(), 02770), 0);
  const auto become = [](unsigned user) {
    return ::setgroups(0, nullptr) == 0 && ::setresgid(54321, 54321, 54321) == 0 && ::setresuid(user, user, user) == 0;
  };
  Child first([&] {
    ASSERT_TRUE(become(1001));
    Store store{base, "jobs"};
    ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
    Child::ready_and_sleep();
  });
  ASSERT_TRUE(first.await_ready());
  in_child([&] {
    ASSERT_TRUE(become(1002));
    Store store{base, "jobs"};
    EXPECT_FALSE(read(store).record->released);
    EXPECT_EQ(store.request_step_down({{7}, "ops", "why"}, within(1s)), std::nullopt);
  });
  first.kill();
  in_child([&] {
    ASSERT_TRUE(become(1002));
    Store store{base, "jobs"};
    EXPECT_TRUE(read(store).record->released);
    EXPECT_TRUE(swap(store, version(7, {70}), record(8, 80)));
    EXPECT_THAT(names(base / "jobs"), ElementsAre("2"));
  });
}

TEST(FileDirectory, AFileIsNoDirectory) {
  Scratch base;
  std::ofstream(base / "jobs") << "hello";
  EXPECT_THAT(refusal(base), HasSubstr("is not a directory"));
}

TEST(FileDirectory, OtherFilesInTheDirectoryAreLeftAlone) {
  Scratch base;
  made(base / "jobs");
  Store store{base, "jobs"};
  for (const auto* name : {"README", "01", "1a", "-1", "step_down.x", "0"}) std::ofstream(base / "jobs" / name) << "x";
  EXPECT_FALSE(read(store).record);
  ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
  EXPECT_EQ(names(base / "jobs").size(), 7u);
}

TEST(FileDirectory, TooManyFilesAreAnErrorThatSaysSo) {
  Scratch base;
  made(base / "jobs");
  Store store{base, "jobs"};
  for (int i = 0; i < 3000; ++i) std::ofstream(base / "jobs" / ("other" + std::to_string(i)));
  EXPECT_THAT(error_of(store.read(within(1s))).message, HasSubstr("too many files"));
}

TEST(FileDirectory, TheLastNumberIsRefused) {
  Scratch base;
  made(base / "jobs");
  Store store{base, "jobs"};
  std::ofstream(base / "jobs/18446744073709551615") << "x";
  for (const auto& refused :
       {error_of(store.read(within(1s))), error_of(store.compare_and_set(std::nullopt, record(7, 70), within(1s)))}) {
    EXPECT_EQ(refused.fault, Fault::corrupt);
    EXPECT_THAT(refused.message,
                AllOf(HasSubstr("jobs/18446744073709551615"), HasSubstr("no leader made it; remove it")));
  }
  fs::remove(base / "jobs/18446744073709551615");
  EXPECT_TRUE(swap(store, std::nullopt, record(7, 70)));
}

TEST(FileDirectory, ASymbolicLinkInTheElectionsPlaceIsNamed) {
  Scratch base, elsewhere;
  fs::create_directory_symlink(elsewhere.path(), base / "jobs");
  EXPECT_THAT(refusal(base), AllOf(HasSubstr("jobs is a symbolic link"), HasSubstr("remove it")));
  fs::create_directory_symlink(elsewhere.path(), base / "link");
  EXPECT_EQ(refusal(base / "link"), "accepted") << "the directory that the user names may be one";
}

/// As where somebody shares it while a candidate runs.
TEST(FileDirectory, WhatIsWrittenIsAsReadableAsItsDirectoryIsThen) {
  const Scratch base;
  Store store{base, "jobs"};
  ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
  fs::permissions(base / "jobs", fs::perms{0755});
  ASSERT_TRUE(swap(store, version(7, {70}), record(8, 80)));
  std::set<unsigned> modes;
  for (const auto& entry : fs::directory_iterator(base / "jobs")) modes.insert(mode_of(entry.path()));
  EXPECT_TRUE(modes.contains(0644));
}

/// As after a start of the machine, where /run is empty: whoever observes must not decide whose the directory is.
TEST(FileDirectory, ALookMakesNothingAndFindsNobodyUntilTheFirstClaim) {
  const Scratch scratch;
  for (const auto& base : {scratch.path(), scratch / "base"}) {
    SCOPED_TRACE(base);
    Store observer{base, "jobs"};
    EXPECT_FALSE(read(observer).record);
    EXPECT_EQ(observer.request_step_down({{7}, "ops", "why"}, within(1s)), std::nullopt);
    observer.await_change(std::nullopt, within(1ms));
    EXPECT_FALSE(fs::exists(base / "jobs"));
    std::thread claims([&] {
      Store candidate{base, "jobs"};
      EXPECT_TRUE(swap(candidate, std::nullopt, record(7, 70)));
    });
    observer.await_change(std::nullopt, within(20s));
    claims.join();
    EXPECT_TRUE(read(observer).record);
  }
}

TEST(FileDirectory, AFileSystemWithoutUnnamedFilesIsRefusedByName) {
  const Scratch base;
  Store store{base, "jobs"};
  unnamed_files = false;
  const auto refused = error_of(store.compare_and_set(std::nullopt, record(7, 70), within(1s)));
  unnamed_files = true;
  EXPECT_EQ(refused.fault, Fault::misconfigured);
  EXPECT_THAT(refused.message, HasSubstr("O_TMPFILE"));
}

// ---- the list ----

std::vector<std::string> listed_in(const fs::path& base) {
  std::vector<std::string> found;
  for (const auto& row : value(list_of(base)(within(1h))).elections) found.push_back(row.election);
  return found;
}

TEST(FileList, LongNamesAreFoundAndWhatNoElectionHasIsPassedOver) {
  const Scratch base, elsewhere;
  const std::string full(200, '/');
  for (const auto& name : {full, full.substr(1), std::string("jobs")})
    ASSERT_TRUE(swap(*std::make_unique<Store>(base, name), std::nullopt, record(7, 70)));
  fs::create_directory(elsewhere / "other");
  fs::create_directory_symlink(elsewhere.path(), base / "link");
  fs::create_directory_symlink(elsewhere.path(), base / "link~");
  fs::create_directories(base / "a~/b~/c~/d~");
  std::ofstream(base / "file") << "x";
  EXPECT_THAT(listed_in(base), ElementsAre(full.substr(1), full, "jobs"));
}

/// In a directory where others may make some, too.
TEST(FileList, ADirectoryThatWeMayNotOpenIsPassedOver) {
  const Scratch base;
  ASSERT_TRUE(swap(*std::make_unique<Store>(base, "jobs"), std::nullopt, record(7, 70)));
  fs::create_directory(base / "other~");
  fs::permissions(base / "other~", fs::perms::none);
  fs::permissions(base.path(), fs::perms{0755});
  in_child(
      [&] {
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(cannot);
        if (!fs::exists(base / "jobs")) ::_exit(cannot);
        EXPECT_THAT(listed_in(base), ElementsAre("jobs"));
      },
      "this root may not become another user, or that one may not go where the tests write");
  fs::permissions(base / "other~", fs::perms::owner_all);
}

TEST(FileList, ALinkThatComesAfterALookIsNotFollowed) {
  const Scratch base, elsewhere;
  const auto pieces = encoded(std::string(79, '/') + "x.");
  fs::create_directory(base / pieces[0]);
  fs::create_directory(elsewhere / pieces[1]);
  const auto list = list_of(base);
  const After each([&, first = true](const std::string&, const std::string& name) mutable {
    if (name != pieces[0] || !std::exchange(first, false)) return;
    fs::remove(base / pieces[0]);
    fs::create_directory_symlink(elsewhere.path(), base / pieces[0]);
  });
  EXPECT_FALSE(list(within(1h)));
}

/// Each look at it takes a moment.
class TickingClock final : public Clock {
 public:
  Time now() const noexcept override { return Time(std::chrono::milliseconds(++looks)); }
  std::unique_ptr<Waker> make_waker() override { throw std::logic_error("nobody waits"); }
  std::int64_t unix_ms() const noexcept override { return 0; }
  mutable std::atomic<int> looks{0};
};

TEST(FileList, NamesThatTakeTooLongAreAnErrorAndMayBeAskedForAgain) {
  const Scratch base;
  for (int i = 0; i < 40; ++i) fs::create_directories(base / "long~" / ("no election " + std::to_string(i)));
  { ASSERT_TRUE(swap(*std::make_unique<Store>(base, "jobs"), std::nullopt, record(7, 70))); }
  const auto list = list_of(base);
  TickingClock clock;
  const auto late = list(within(20ms, clock));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().fault, Fault::timed_out);
  EXPECT_THAT(late.error().message, HasSubstr(base.path().string()));
  EXPECT_LE(clock.looks, 22);
  const auto all = value(list(within(1h, clock)));
  EXPECT_TRUE(all.last);
  ASSERT_EQ(all.elections.size(), 1u);
  EXPECT_EQ(all.elections[0].election, "jobs");
}

}  // namespace
}  // namespace tenure::file
