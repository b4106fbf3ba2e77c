// SPDX-License-Identifier: Apache-2.0
// What the contract suite needs to know of a store. A store's own test derives from it and instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(memory, BackendContract, testing::Values(subject), tenure::contract::name_of);
//   INSTANTIATE_TEST_SUITE_P(memory, StoreContract, testing::Values(subject), tenure::contract::name_of);
// A session store without compare-and-set instantiates BackendContract alone.
#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <vector>

#include <tenure/contract/odd_names.hpp>

namespace tenure::contract {

/// A timing for tests that wait for the end of so short a term.
inline Timing short_terms_of(Clock::Duration term) {
  return {.term = term,
          .renew = term / 20,
          .retry = term / 100,
          .margin = term / 20,
          .call = term * 3 / 4,
          .drain = term / 2};
}

/// One test's own store, or a part of a shared one that no other test uses.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;

  /// A new candidate's backend, as users open it. Throws std::invalid_argument for names that can never work.
  virtual std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) = 0;

  /// A new connection to one election's record; null if the store has no compare-and-set.
  virtual std::shared_ptr<ConditionalStore> store(const std::string& election) {
    (void)election;
    return nullptr;
  }

  /// No term of this ends during a test, however busy the machine is.
  virtual Timing timing() const {
    using std::chrono::milliseconds, std::chrono::seconds;
    return {.term = seconds(20),
            .renew = seconds(9),
            .retry = milliseconds(20),
            .margin = milliseconds(500),
            .call = seconds(10),
            .drain = seconds(10)};
  }

  /// For tests that wait for a term's end: as short as the store allows, with room for a busy machine. The default
  /// suits a server. Where a call takes microseconds, 200 ms do, and the suite is over ten times sooner.
  virtual Timing short_timing() const { return short_terms_of(std::chrono::seconds(2)); }

  /// How long the first candidate of a new election may take until it leads.
  virtual Clock::Duration first_election() const { return std::chrono::seconds(30); }

  /// How long a hand-over may take if the store pushes. A follower without a push looks when the next renewal is due.
  virtual Clock::Duration hand_over() const { return timing().renew / 2; }

  /// If this is false, a claim on an absent record counts only once it has stood for a term.
  virtual bool absence_certain() const { return true; }

  /// Whether all candidates read one clock, as on one host. Only then a read may say so: Read::same_clock.
  virtual bool one_clock() const { return false; }
  /// Whether a tenure that nobody renews ends, although its holder lives.
  virtual bool lapses() const { return true; }

  /// Whether await_change() returns as soon as something changes.
  virtual bool pushes() const { return true; }

  /// Whether await_change() returns the version of a release.
  virtual bool names_releases() const { return pushes(); }

  /// Whether leaders hear of requests to step down, as this store is opened here.
  virtual bool heeds_step_down() const { return true; }

  /// Whether a write may be refused although others saw it, because another write replaced it before it was answered.
  /// Nobody then holds the record that it wrote. This happens where records are written directly, without a lease.
  virtual bool refused_may_have_stood() const { return false; }

  /// How often each of eight that contend succeeds: candidates in tenures, writers in writes.
  virtual int contended_tenures() const { return 100; }

  /// Elections that the store must keep apart.
  virtual std::vector<std::string> odd_elections() const { return odd_names(); }

  // Faults of the store. False: this store cannot be made to have it, and the tests that need it are skipped.

  virtual bool restart() { return false; }                    ///< The server stops, and starts again with its data.
  virtual bool step_clock(Clock::Duration) { return false; }  ///< Steps the store's own clock by that much more.
  virtual bool hang(bool) { return false; }                   ///< Calls get no answer.

  /// The candidate dies: it releases nothing and asks nothing more.
  virtual void crash(std::shared_ptr<Backend> backend) { backend.reset(); }
};

/// A store that the suite tests.
struct Subject {
  std::string name;  ///< Letters, digits, underscores.
  std::function<std::unique_ptr<StoreUnderTest>()> make;
  /// Why the store is not there in this run; its tests are then skipped. They exist all the same, because ctest lists
  /// the tests once, before any server is started.
  std::string missing{};
  friend std::ostream& operator<<(std::ostream& out, const Subject& subject) { return out << subject.name; }
};

/// Opens a connection to the record of this election.
using OpenStore = std::function<std::shared_ptr<ConditionalStore>(const std::string& election)>;

/// A store that is known by nothing but its factory, that tells nobody of a change, and that has no faults on demand.
/// `fresh` makes one test's own store. Tests wait for the end of terms of `short_term`: see short_timing(). A store
/// that can do more derives from StoreUnderTest, and is tested for more.
Subject subject(std::string name, std::function<OpenStore()> fresh,
                Clock::Duration short_term = std::chrono::seconds(2));

}  // namespace tenure::contract
