// SPDX-License-Identifier: Apache-2.0
// The protocol of one election's directory, step by step: two or three stores in one process stand for as
// many processes, and act at the very moments between each other's system calls.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <semaphore>
#include <tenure/kit/who.hpp>
#include <tenure/lock_table.hpp>
#include <thread>

#include "store.hpp"
#include "support.hpp"

namespace {

/// Inodes in the order in which they were made durable: only a power cut would show that one is missing.
thread_local std::vector<ino_t> synced;
thread_local bool nothing_is_synced;

}  // namespace

/// The C library's, noted.
extern "C" int fsync(int fd) {
  if (nothing_is_synced) return errno = EIO, -1;
  struct stat now {};
  if (::fstat(fd, &now) == 0) synced.push_back(now.st_ino);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace tenure::file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const election = "jobs";

struct FileStore : ::testing::Test {
  Scratch base;
  fs::path directory = made(base / election);
  Store a{base, election}, b{base, election}, c{base, election};
};

/// One of them leads.
struct FileStoreLed : FileStore {
  void SetUp() override { ASSERT_TRUE(swap(a, std::nullopt, record(7, 70))); }
};

TEST_F(FileStore, AMissingRecordIsCertainlyMissing) {
  const auto found = read(a);
  EXPECT_FALSE(found.record);
  EXPECT_TRUE(found.absence_certain);
  EXPECT_FALSE(found.unreadable);
}

TEST_F(FileStore, AClaimNeedsTheVersionThatWasRead) {
  EXPECT_FALSE(swap(a, version(1, {1}), record(7, 70))) << "nothing stands there";
  ASSERT_TRUE(swap(a, std::nullopt, record(7, 70)));
  EXPECT_FALSE(swap(b, std::nullopt, record(8, 80)));
  EXPECT_FALSE(swap(b, version(7, {71}), record(8, 80)));
  EXPECT_FALSE(swap(b, version(6, {70}), record(8, 80)));
  EXPECT_EQ(read(c).record->beat, 70u);
  EXPECT_TRUE(swap(b, version(7, {70}), record(8, 80)));
  EXPECT_EQ(read(c).record->token, Token{8});
  EXPECT_THAT(names(directory), ElementsAre("2"));
}

TEST_F(FileStoreLed, AWriteThatDoesNotApplyAnswersTheRecord) {
  const auto refused = value(b.compare_and_set(std::nullopt, record(8, 80), within(1s)));
  EXPECT_FALSE(refused.applied);
  ASSERT_TRUE(refused.found.record);
  EXPECT_EQ(refused.found.record->token, Token{7});
  EXPECT_TRUE(refused.found.same_clock);
}

// A renewal between the reading and the claim: the claimer decided on a version that is no more.
TEST_F(FileStoreLed, AClaimReadsTheVersionAgain) {
  ASSERT_EQ(read(b).record->beat, 70u);
  ASSERT_TRUE(swap(a, version(7, {70}), record(7, 71)));
  EXPECT_FALSE(swap(b, version(7, {70}), record(8, 80)));
  EXPECT_TRUE(swap(a, version(7, {71}), record(7, 72)));
}

TEST_F(FileStore, OfTwoClaimsOneWins) {
  std::optional<bool> other;
  Store late{base, election, [&](Step step) {
               if (step == Step::locked) other = swap(b, std::nullopt, record(8, 80));
             }};
  EXPECT_FALSE(swap(late, std::nullopt, record(9, 90)));
  EXPECT_EQ(other, true);
  EXPECT_EQ(read(c).record->token, Token{8});
  EXPECT_THAT(names(directory), ElementsAre("1"));
}

// Stopped before its link while two others led one after the other: the name is free again.
TEST_F(FileStore, AClaimThatCameTooLateIsTakenBack) {
  Store late{base, election, [&](Step step) {
               if (step != Step::locked) return;
               ASSERT_TRUE(swap(a, std::nullopt, record(7, 70)));
               ASSERT_TRUE(swap(b, version(7, {70}), record(8, 80)));
               ASSERT_THAT(names(directory), ElementsAre("2"));
             }};
  EXPECT_FALSE(swap(late, std::nullopt, record(9, 90)));
  EXPECT_EQ(read(c).record->token, Token{8});
  EXPECT_THAT(names(directory), ElementsAre("2"));
  EXPECT_TRUE(swap(b, version(8, {80}), record(8, 81)));
}

// The lock stands before the name does: whoever sees the file sees its holder alive.
TEST_F(FileStore, AClaimIsLockedWhenItAppears) {
  std::optional<bool> released;
  Store mine{base, election, [&](Step step) {
               if (step == Step::linked) released = read(b).record->released;
             }};
  ASSERT_TRUE(swap(mine, std::nullopt, record(7, 70)));
  EXPECT_EQ(released, false);
}

TEST_F(FileStoreLed, OlderFilesGoOnlyWhenTheNewStandsDurably) {
  std::set<std::string> before;
  std::vector<ino_t> durable;
  Store next{base, election, [&](Step step) {
               if (step == Step::listed) synced.clear();
               if (step != Step::synced) return;
               before = names(directory);
               durable = synced;
             }};
  ASSERT_TRUE(swap(next, version(7, {70}), record(8, 80)));
  const auto inode = [](const fs::path& path) {
    struct stat now {};
    return ::stat(path.c_str(), &now) == 0 ? now.st_ino : 0;
  };
  EXPECT_THAT(durable, ElementsAre(inode(directory / "2"), inode(directory))) << "what it says, then its name";
  EXPECT_THAT(before, ElementsAre("1", "2"));
  EXPECT_THAT(names(directory), ElementsAre("2"));
}

// What a listing costs, and so a renewal, does not grow.
TEST_F(FileStore, AfterManyTenuresOneFileIsLeft) {
  std::optional<Expected> last;
  for (std::uint64_t token = 1; token <= 40; ++token) {
    ASSERT_TRUE(swap(token % 2 ? a : b, last, record(token, token)));
    ASSERT_EQ(c.request_step_down({{token}, "ops", "next"}, within(1s)), std::nullopt);
    last = version(token, {token});
  }
  EXPECT_THAT(names(directory), ElementsAre("40", "step_down.40"));
}

// While a disk fails nobody removes anything, and a directory with too many files is of no use when it works again.
TEST_F(FileStoreLed, AClaimThatCannotBeMadeDurableLeavesNothing) {
  nothing_is_synced = true;
  for (int i = 0; i < 3; ++i) error_of(b.compare_and_set(version(7, {70}), record(8, 80), within(1s)));
  nothing_is_synced = false;
  EXPECT_THAT(names(directory), ElementsAre("1"));
  EXPECT_TRUE(swap(a, version(7, {70}), record(7, 71))) << "the leader goes on";
  EXPECT_TRUE(swap(b, version(7, {71}), record(8, 80)));
}

TEST_F(FileStore, NewerFilesAreNeverRemoved) {
  std::set<std::string> after;
  Store mine{base, election, [&](Step step) {
               if (step != Step::listed) return;
               ASSERT_TRUE(swap(b, version(7, {70}), record(8, 80)));
             }};
  ASSERT_TRUE(swap(mine, std::nullopt, record(7, 70)));
  EXPECT_EQ(read(c).record->token, Token{8});
  EXPECT_FALSE(swap(mine, version(7, {70}), record(7, 71)));
}

// A claim between reading the newest file and answering: that file was not the newest at any moment since.
TEST_F(FileStoreLed, AReadReturnsWhatWasTheNewestAtSomeMomentOfIt) {
  bool claims = true;
  Store reader{base, election, [&](Step step) {
                 if (step != Step::looked || !std::exchange(claims, false)) return;
                 ASSERT_TRUE(swap(b, version(7, {70}), record(8, 80)));
               }};
  EXPECT_EQ(read(reader).record->token, Token{8});
}

TEST_F(FileStoreLed, RenewalsAreSeen) {
  const auto renewed = record(7, 71);
  const auto answer = value(a.compare_and_set(version(7, {70}), renewed, within(1s)));
  ASSERT_TRUE(answer.applied);
  EXPECT_EQ(answer.found.record->beat, 71u);
  const auto found = read(b);
  EXPECT_EQ(found.record->beat, 71u);
  EXPECT_EQ(found.record->asked, renewed.asked);
  EXPECT_THAT(names(directory), ElementsAre("1")) << "in place";
}

TEST_F(FileStoreLed, OnlyTheHolderRenewsInPlace) {
  // A copy of the holder with the same beat: one of the two lives on.
  ASSERT_TRUE(swap(b, version(7, {70}), record(7, 71)));
  EXPECT_FALSE(swap(a, version(7, {70}), record(7, 72)));
  EXPECT_EQ(read(c).record->beat, 71u);
}

TEST_F(FileStore, AHolderSupersededBetweenWritingAndListingIsRefused) {
  Store mine{base, election, [&](Step step) {
               if (step != Step::checked) return;
               ASSERT_TRUE(swap(b, version(7, {70}), record(8, 80)));
             }};
  ASSERT_TRUE(swap(mine, std::nullopt, record(7, 70)));
  EXPECT_FALSE(swap(mine, version(7, {70}), record(7, 71)));
  EXPECT_EQ(read(c).record->token, Token{8});
}

TEST_F(FileStoreLed, OnlyTheHolderReleases) {
  ASSERT_TRUE(swap(b, version(7, {70}), record(8, 80)));
  auto last = record(7, 71);
  last.released = true;
  EXPECT_FALSE(swap(a, version(7, {70}), last));
  EXPECT_FALSE(read(c).record->released);
}

// After a claim that was never answered: what it expected is used up.
TEST_F(FileStoreLed, AReleaseMayUseUpTheVersionThatAClaimExpected) {
  auto last = record(8, 81);
  last.released = true;
  ASSERT_TRUE(swap(b, version(7, {70}), last));
  EXPECT_TRUE(read(c).record->released);
  EXPECT_EQ(read(c).record->beat, 81u);
  EXPECT_FALSE(swap(b, version(7, {70}), record(8, 80))) << "the late claim finds nothing";
}

TEST_F(FileStore, AnEndedHolderIsKnownToBeDead) {
  {
    Store gone{base, election};
    ASSERT_TRUE(swap(gone, std::nullopt, record(7, 70)));
    EXPECT_FALSE(read(b).record->released);
  }
  const auto found = read(b);
  EXPECT_TRUE(found.record->released);
  EXPECT_EQ(found.record->beat, 70u) << "the version is the one that it wrote";
  EXPECT_TRUE(swap(b, version(7, {70}), record(8, 80)));
}

TEST_F(FileStoreLed, ReadingLeavesTheLockAlone) {
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(read(b).record->released);
  EXPECT_FALSE(read(a).record->released) << "nor does the holder's own reading";
  EXPECT_FALSE(read(b).record->released);
}

TEST_F(FileStoreLed, ARequestToStepDownReachesTheHolderAndNobodyElse) {
  EXPECT_EQ(b.request_step_down({{6}, "ops", "of another"}, within(1s)), std::nullopt);
  EXPECT_FALSE(value(a.compare_and_set(version(7, {70}), record(7, 71), within(1s))).found.step_down);
  EXPECT_EQ(b.request_step_down({{7}, "ops", "new\nrelease"}, within(1s)), std::nullopt);
  EXPECT_EQ(b.request_step_down({{7}, "ops", "asked twice"}, within(1s)), std::nullopt);
  const auto answer = value(a.compare_and_set(version(7, {71}), record(7, 72), within(1s)));
  ASSERT_TRUE(answer.applied);
  ASSERT_TRUE(answer.found.step_down);
  EXPECT_EQ(answer.found.step_down->token, Token{7});
  EXPECT_EQ(answer.found.step_down->by, "ops");
  EXPECT_EQ(answer.found.step_down->why, "new?release");
  EXPECT_TRUE(read(c).step_down);
  ASSERT_TRUE(swap(b, version(7, {72}), record(8, 80)));
  EXPECT_FALSE(read(c).step_down);
  EXPECT_THAT(names(directory), ElementsAre("2"));
}

TEST_F(FileStoreLed, ARequestToStepDownOfATokenToComeMeansNothing) {
  EXPECT_EQ(b.request_step_down({{8}, "ops", "too early"}, within(1s)), std::nullopt);
  ASSERT_TRUE(swap(a, version(7, {70}), record(8, 80)));
  EXPECT_FALSE(read(c).step_down);
}

TEST_F(FileStore, TextsThatDoNotFitAreRefusedByName) {
  auto mine = record(7, 70);
  mine.who = std::string(max_who_bytes + 1, 'x');
  EXPECT_THAT(error_of(a.compare_and_set(std::nullopt, mine, within(1s))).message, HasSubstr("who has 1001 bytes"));
  EXPECT_THAT(names(directory), IsEmpty());
}

TEST_F(FileStore, NothingIsBegunAfterTheLimit) {
  EXPECT_EQ(error_of(a.read(within(-1s))).fault, Fault::timed_out);
  EXPECT_EQ(error_of(a.compare_and_set(std::nullopt, record(7, 70), within(-1s))).fault, Fault::timed_out);
  EXPECT_THAT(names(directory), IsEmpty());
}

// ---- Lateness. All by one clock that the test drives.

struct FileStoreLate : ::testing::Test {
  Scratch base;
  ManualClock clock;
  static constexpr Clock::Duration term = 1s;

  Record at_now(std::uint64_t token, std::uint64_t beat) { return record(token, beat, term, clock); }
};

TEST_F(FileStoreLate, ARenewalAfterTheLeaseIsRefusedUnwritten) {
  Store mine{base, election}, other{base, election};
  ASSERT_TRUE(swap(mine, std::nullopt, at_now(7, 70), clock));
  clock.advance(term);
  EXPECT_FALSE(swap(mine, version(7, {70}), at_now(7, 71), clock));
  EXPECT_EQ(read(other, clock).record->beat, 70u);
}

TEST_F(FileStoreLate, ARenewalJustBeforeTheLeasesEndCounts) {
  Store mine{base, election};
  ASSERT_TRUE(swap(mine, std::nullopt, at_now(7, 70), clock));
  clock.advance(term - 1ns);
  EXPECT_TRUE(swap(mine, version(7, {70}), at_now(7, 71), clock));
  clock.advance(term - 1ns);
  EXPECT_TRUE(swap(mine, version(7, {71}), at_now(7, 72), clock));
}

struct FileStoreLateAt : FileStoreLate, ::testing::WithParamInterface<Step> {};

TEST_P(FileStoreLateAt, ARenewalThatEndsAfterTheLeaseCountsForNothingForEver) {
  bool pause = false;
  Store mine{base, election, [&](Step step) {
               if (step == GetParam() && std::exchange(pause, false)) clock.advance(term);
             }};
  Store other{base, election};
  ASSERT_TRUE(swap(mine, std::nullopt, at_now(7, 70), clock));
  clock.advance(term / 2);
  ASSERT_TRUE(swap(mine, version(7, {70}), at_now(7, 71), clock));
  clock.advance(term / 2);
  pause = true;
  const auto asked = at_now(7, 72);  // by its own deadline it has half a term left when it ends
  EXPECT_FALSE(swap(mine, version(7, {71}), asked, clock));
  EXPECT_FALSE(swap(mine, version(7, {71, 72}), at_now(7, 73), clock));
  EXPECT_NE(read(other, clock).record->beat, 73u);
  EXPECT_TRUE(swap(mine, version(7, {read(mine, clock).record->beat}), at_now(8, 80), clock))
      << "a tenure of its own is another matter";
}

INSTANTIATE_TEST_SUITE_P(Steps, FileStoreLateAt, ::testing::Values(Step::checked, Step::beaten, Step::relisted));

// A leader is stopped in its renewal until its lease is over. Another finds it lapsed and reads its version a
// second time, unchanged; right then the first one wakes up, writes, lists, and is still the newest. Were
// that renewal judged by the deadline that it asks for, both would lead for nine tenths of a term.
TEST_F(FileStoreLate, ALateRenewalJudgedByItsNewDeadlineWouldMakeTwoLeaders) {
  std::binary_semaphore stopped{0}, woken{0}, renewed{0};
  bool stop = false;
  Store leader{base, election, [&](Step step) {
                 if (step != Step::checked || !std::exchange(stop, false)) return;
                 stopped.release();
                 woken.acquire();
               }};
  ASSERT_TRUE(swap(leader, std::nullopt, at_now(7, 70), clock));
  clock.advance(term * 9 / 10);
  stop = true;
  bool leads_on = true;
  const auto asked = at_now(7, 71);
  std::thread renewal([&] {
    leads_on = swap(leader, version(7, {70}), asked, clock);
    renewed.release();
  });
  stopped.acquire();
  clock.advance(term / 10);  // the lease of beat 70 is over, that of 71 would not be

  const auto other = lock_table(std::make_shared<Store>(base, election,
                                                        [&](Step step) {
                                                          if (step != Step::compared) return;
                                                          woken.release();
                                                          renewed.acquire();
                                                        }),
                                election);
  ASSERT_EQ(other->accepts(Timing::of(term)), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<Granted>(other->acquire(within(1s, clock))));
  woken.release();  // should the claim never have come that far
  renewal.join();
  EXPECT_FALSE(leads_on) << "two leaders";
}

}  // namespace
}  // namespace tenure::file
