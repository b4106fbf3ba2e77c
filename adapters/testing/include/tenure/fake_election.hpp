// SPDX-License-Identifier: Apache-2.0
// An election for your unit tests.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/hooks.hpp>
#include <tenure/leader_task.hpp>
#include <tenure/leadership.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Your test elects and ousts, hangs the store, and steps the time. Your hooks are called as a LeaderManager calls
/// them, by the same decisions, but on the thread of your test. When a method returns, everything that follows from it
/// has happened. So a test has nothing to wait for:
///
///   Reports reports;
///   tenure::FakeElection election(reports.hooks());
///   election.elect();
///   ASSERT_TRUE(reports.running());
///   election.hang_store();
///   election.advance(election.leadership().remaining());
///   EXPECT_FALSE(reports.running());                           // stopped,
///   EXPECT_GT(election.others_may_lead_in(), 0s);              // and nobody else may lead yet
///
/// A class that makes its LeaderManager itself is tested by a real one, with a ManualClock and a FaultyBackend: see
/// examples/tested/service_test.cpp.
///
/// Only elect() grants a claim, once. Until then the store denies each claim. Tokens are 1, 2, 3...
///
/// One thread calls the methods. Copies of leadership() answer any thread. A hook may call advance(), for an ousting()
/// that takes its time, and resign() and stop(). A method that cannot do what its name says throws std::logic_error.
class FakeElection {
 public:
  /// A candidate with your hooks, which campaigns at once. Throws as the constructor of LeaderManager does.
  /// REQUIRES: elected() returns. If yours leads until `stop`, it is work for the other constructor.
  explicit FakeElection(Hooks hooks, Timing timing = Timing::of(std::chrono::seconds(10)));

  /// A LeaderTask's work, on a thread of its own. A method that ends the tenure returns once the work has returned, so
  /// work that does not heed its `stop` hangs your test.
  explicit FakeElection(LeaderTask::Work work, LeaderTask::OnReturn on_return = LeaderTask::OnReturn::stay,
                        Hooks hooks = {}, Timing timing = Timing::of(std::chrono::seconds(10)));

  ~FakeElection();  ///< stop()
  FakeElection(const FakeElection&) = delete;
  FakeElection& operator=(const FakeElection&) = delete;

  // The election.

  /// Grants the next claim, and returns the token. Time goes on only as far as the candidate waits by itself: after
  /// resign() for its cool-down, after a step-down for a term.
  Token elect();

  /// Lets another candidate lead. Time goes on to the next renewal, which the store refuses: Reason::superseded.
  void oust(const std::string& successor = "rival");

  /// Asks the leader to step down. It hears of it with its next renewal; time goes on to there.
  void ask_to_step_down(const std::string& by = "ops", const std::string& why = "the test asks");

  // The store.

  void hang_store();             ///< Every call ends at its limit, without an answer.
  void fail_store(Error error);  ///< Every call ends at once, with this error.
  void mend_store();             ///< It answers again.

  // The time.

  void advance(Clock::Duration by);  ///< What is due on the way happens, each at its time.
  void pause(Clock::Duration by);    ///< Stops the process for this long, as SIGSTOP would: what was due happens late.
  ManualClock& clock() noexcept;     ///< The clock for your code. REQUIRES: only the two methods above advance it.

  // The program.

  void resign(std::optional<Clock::Duration> cool_down = std::nullopt);  ///< LeaderManager::resign()
  void stop();  ///< LeaderManager::stop(). In a hook it only requests the stop.

  /// Waits, in real time, until the work of this tenure has returned. Use it for work that ends by itself, and is
  /// not called again.
  void await_work();

  // The questions.

  Leadership leadership() const;               ///< What LeaderManager::leadership() returns.
  const Timing& timing() const noexcept;       ///< The timing that was given to the constructor.
  Clock::Duration others_may_lead_in() const;  ///< What is left of our lease in the store; zero: there is none.
  bool overran() const noexcept;               ///< An ousting() took too long. Hooks::abort_on_overrun ends no test.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenure
