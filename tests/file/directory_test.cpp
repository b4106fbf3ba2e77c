// SPDX-License-Identifier: Apache-2.0
// Which directories an election gets, and which are refused.
#include "directory.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/stat.h>

#include <atomic>
#include <functional>

#include "election_list.hpp"
#include "store.hpp"
#include "support.hpp"

namespace {

/// What happens after somebody looked at a path.
std::function<void(const std::string& path)> after_look;

}  // namespace

/// Takes the place of the C library's.
extern "C" int stat(const char* path, struct stat* out) noexcept {
  static const auto real = reinterpret_cast<int (*)(const char*, struct stat*)>(::dlsym(RTLD_NEXT, "stat"));
  const int done = real(path, out);
  if (after_look) after_look(path);
  return done;
}

namespace tenure::file {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const fs::path& base, const std::string& election = "jobs") {
  try {
    Store{base, election};
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
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

TEST(FileDirectory, NetworkFileSystemsAreRefusedByName) {
  EXPECT_FALSE(unfit_file_system(0xEF53));
  EXPECT_FALSE(unfit_file_system(0x01021994));
  for (const auto& [type, name] : {std::pair<std::uint64_t, const char*>{0x6969, "NFS"},
                                   {0xFF534D42, "CIFS"},
                                   {0xFE534D42, "SMB"},
                                   {0x01021997, "9p"},
                                   {0x65735546, "FUSE"},
                                   {0x5346414F, "AFS"},
                                   {0x00C36400, "Ceph"},
                                   {0x0BD00BD0, "Lustre"}}) {
    ASSERT_TRUE(unfit_file_system(type)) << name;
    EXPECT_THAT(*unfit_file_system(type), AllOf(HasSubstr(name), HasSubstr("a directory on a local disk")));
  }
  EXPECT_THAT(unfit_file_system(0x12345).value_or(""), HasSubstr("0x12345"));
}

TEST(FileDirectory, AMissingDirectoryIsMadeForItsOwner) {
  Scratch scratch;
  Store made{scratch / "base", "jobs"};
  struct stat now {};
  ASSERT_EQ(::stat((scratch / "base/jobs").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0700u);
  ASSERT_TRUE(swap(made, std::nullopt, record(7, 70)));
  ASSERT_EQ(::stat((scratch / "base/jobs/1").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0600u);
  EXPECT_THAT(refusal(scratch / "missing/base"), HasSubstr("name a directory whose parent exists"));
}

TEST(FileDirectory, AGroupKeepsItsRightsWhateverTheUmask) {
  Scratch base;
  ASSERT_EQ(::chmod(base.path().c_str(), 02770), 0);
  const auto before = ::umask(077);
  Store made{base, "jobs"};
  const bool claimed = swap(made, std::nullopt, record(7, 70));
  ::umask(before);
  ASSERT_TRUE(claimed);
  struct stat now {};
  ASSERT_EQ(::stat((base / "jobs").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 02770u);
  ASSERT_EQ(::stat((base / "jobs/1").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777, 0640u);
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
TEST(FileDirectory, ADirectoryOfAnothersThatComesAfterALookIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  bool changed = true;
  for (int nth = 1; changed; ++nth) {
    Scratch base;
    const auto ours = base / "jobs", forged = base / "forged";
    ASSERT_EQ(::chmod(base.path().c_str(), 01777), 0);
    fs::create_directory(ours), fs::create_directory(forged);
    ASSERT_EQ(::chown(forged.c_str(), 12345, 0), 0);
    changed = false;
    after_look = [&, looks = 0](const std::string& path) mutable {
      if (path != ours || ++looks != nth) return;
      changed = true;
      fs::rename(ours, base / "before");
      fs::rename(forged, ours);
    };
    const auto refused = ElectionDirectory(base, "jobs").enter();
    after_look = nullptr;
    EXPECT_EQ(refused.has_value(), changed) << "look " << nth;
    EXPECT_TRUE(changed || nth > 2) << "it looks more than once";
  }
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
  EXPECT_EQ(Child([&] {
              ASSERT_TRUE(become(1002));
              Store store{base, "jobs"};
              EXPECT_FALSE(read(store).record->released);
              EXPECT_EQ(store.request_step_down({{7}, "ops", "why"}, within(1s)), std::nullopt);
            }).end(),
            0);
  first.kill();
  EXPECT_EQ(Child([&] {
              ASSERT_TRUE(become(1002));
              Store store{base, "jobs"};
              EXPECT_TRUE(read(store).record->released);
              EXPECT_TRUE(swap(store, version(7, {70}), record(8, 80)));
              EXPECT_THAT(names(base / "jobs"), ElementsAre("2"));
            }).end(),
            0);
}

TEST(FileDirectory, AFileIsNoDirectory) {
  Scratch base;
  std::ofstream(base / "jobs") << "hello";
  EXPECT_THAT(refusal(base), HasSubstr("is not a directory"));
}

TEST(FileDirectory, OtherFilesInTheDirectoryAreLeftAlone) {
  Scratch base;
  Store store{base, "jobs"};
  for (const auto* name : {"README", "01", "1a", "-1", "step_down.x", "0"}) std::ofstream(base / "jobs" / name) << "x";
  EXPECT_FALSE(read(store).record);
  ASSERT_TRUE(swap(store, std::nullopt, record(7, 70)));
  EXPECT_EQ(names(base / "jobs").size(), 7u);
}

TEST(FileDirectory, TooManyFilesAreAnErrorThatSaysSo) {
  Scratch base;
  Store store{base, "jobs"};
  for (int i = 0; i < 3000; ++i) std::ofstream(base / "jobs" / ("other" + std::to_string(i)));
  EXPECT_THAT(error_of(store.read(within(1s))).message, HasSubstr("too many files"));
}

TEST(FileDirectory, TheLastNumberIsRefused) {
  Scratch base;
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

// ---- the list ----

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
  List list(base);
  TickingClock clock;
  const auto late = list.next(within(20ms, clock));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().fault, Fault::timed_out);
  EXPECT_THAT(late.error().message, HasSubstr(base.path().string()));
  EXPECT_LE(clock.looks, 22);
  const auto all = value(list.next(within(1h, clock)));
  EXPECT_TRUE(all.last);
  ASSERT_EQ(all.elections.size(), 1u);
  EXPECT_EQ(all.elections[0].election, "jobs");
}

}  // namespace
}  // namespace tenure::file
