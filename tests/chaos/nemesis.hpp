// SPDX-License-Identifier: Apache-2.0
// Stops, kills and restarts the candidates of a fleet, mostly the leader, and notes it in their journal.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "history.hpp"

namespace tenure::test {

/// A fault of the world around the candidates, noted by its name in their journal.
struct Deed {
  std::string name;
  std::function<void(pid_t)> begin;  ///< Of a candidate that is at work.
  std::function<void()> end{};       ///< Comes up to three terms later. Empty: there is nothing to end.
  bool to_candidate{};               ///< Else it is noted as done to nobody.
};

struct Plan {
  int candidates{5};
  Clock::Duration term{};  ///< That of the candidates. It sets the pace of the faults.
  Clock::Duration duration{};
  Clock::Duration between_least{}, between_most{};  ///< From one fault to the next.
  std::uint64_t seed{};
  std::vector<Deed> deeds{};  ///< Every third fault is one of these, in turn.
  /// Asked when the duration is over: a busy machine may not have done enough to show anything. Then the faults go on,
  /// ever more slowly, for twice as long at most, or four minutes. Empty: it has.
  std::function<bool()> enough{};
  /// Asked once all faults are over, until it holds. Empty: whether somebody leads.
  std::function<bool()> recovered{};

  /// The duration from TENURE_CHAOS_SECONDS, the seed from TENURE_SEED (else drawn).
  static Plan from_environment(Clock::Duration term, int otherwise_seconds = 120);
};

class Nemesis {
 public:
  /// Starts the candidates "c0", "c1", ...
  Nemesis(Fleet& fleet, const Plan& plan);

  /// Works until the duration is over, then lets all candidates go on, and stops them. Returns false if they do not
  /// recover, or if one does not stop, and says which.
  bool run(std::ostream& log);

 private:
  struct Victim {
    std::string name;
    pid_t pid{};
    Clock::Time resume{Clock::Time::max()}, restart{Clock::Time::max()};
    bool asked{};
  };

  Clock::Duration between(Clock::Duration least, Clock::Duration most);
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  std::size_t at_work() const;
  Victim* choose();
  void strike(Victim& victim);
  void do_deed(pid_t of);
  void end_deed();
  void tend(Clock::Time now);
  bool goes_on();
  void restore();
  bool recover();
  bool recover_and_end(std::ostream& log);

  Fleet& fleet_;
  Plan plan_;
  std::mt19937 random_;
  std::vector<Victim> victims_;
  std::size_t strikes_{}, deeds_{};
  const Deed* running_{};  ///< To be ended at that time.
  Clock::Time end_at_{};
  Clock::Time end_{}, latest_end_{};  ///< Of the faults.
};

/// A summary of a run, for people.
void print(std::ostream& out, const Verdict& verdict);

}  // namespace tenure::test
