// SPDX-License-Identifier: Apache-2.0
// What the contract suite of groups needs to know of a store. A store's own test derives from it, includes
// group_suite.hpp and instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(memory, GroupContract, testing::Values(subject), tenure::contract::name_of_group);
//   INSTANTIATE_TEST_SUITE_P(memory, GuardOfACommit, testing::Values(subject), tenure::contract::name_of_group);
#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tenure/group_store.hpp>
#include <tenure/timing.hpp>

namespace tenure::contract {

/// One test's own groups: no other test and no other run uses them.
class GroupUnderTest {
 public:
  virtual ~GroupUnderTest() = default;

  /// A new connection to this group of the test. Its name has 1 to 200 bytes, any but NUL.
  virtual std::shared_ptr<GroupStore> connect(const std::string& group) = 0;

  /// The same by somebody who may read alone, where the store knows such rights.
  virtual std::shared_ptr<GroupStore> reader(const std::string& group) { return connect(group); }

  /// The limit of a call that is to be answered, however busy the machine is.
  virtual Clock::Duration call() const { return std::chrono::seconds(10); }

  /// Of whole processes. No term of this ends during a test: a starved process has 13 s for each renewal.
  virtual Timing timing() const {
    using std::chrono::milliseconds, std::chrono::seconds;
    return {.term = seconds(20),
            .renew = seconds(1),
            .retry = milliseconds(200),
            .margin = seconds(1),
            .call = seconds(5),
            .drain = seconds(5)};
  }

  /// Whether this store can lose its data. Its groups have a marker then.
  virtual bool can_lose() const { return false; }

  /// Whether await_change() returns as soon as something happens.
  virtual bool pushes() const { return true; }

  /// Whether await_change() returns a single release.
  virtual bool names_releases() const { return pushes(); }

  /// How often each of the threads that contend does so, in tests that need many goes.
  virtual int rounds() const { return 50; }

  // Faults of the store. False: this store cannot be made to have it, and the tests that need it are skipped.

  virtual bool lose_everything() { return false; }                            ///< As FLUSHALL does.
  virtual bool lose_session(const std::string&, SessionId) { return false; }  ///< This session of that group is gone.
  /// Somebody else writes to this election's lead in this group, which stands, so that it cannot be read.
  virtual bool spoil_lead(const std::string&, const std::string&) { return false; }
  virtual bool mend_lead(const std::string&, const std::string&) { return false; }  ///< As the error says.
  virtual bool step_clock(Clock::Duration) { return false; }                        ///< Steps the store's own clock.
  virtual bool hang(bool) { return false; }                                         ///< Calls get no answer.
};

/// A store whose groups the suite tests.
struct GroupSubject {
  std::string name;  ///< Letters, digits, underscores.
  std::function<std::unique_ptr<GroupUnderTest>()> make;
  std::string missing{};  ///< Why the store is not there in this run; its tests are then skipped.
  friend std::ostream& operator<<(std::ostream& out, const GroupSubject& subject) { return out << subject.name; }
};

}  // namespace tenure::contract
