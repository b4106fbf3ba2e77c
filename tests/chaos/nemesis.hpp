// SPDX-License-Identifier: Apache-2.0
// Stops, kills and restarts the candidates of a fleet, mostly the leader, and notes it in their journal.
#pragma once
#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "history.hpp"

namespace tenure::test {

struct Plan {
  int candidates{5};
  Clock::Duration term{};  ///< That of the candidates. It sets the pace of the faults.
  Clock::Duration duration{};
  Clock::Duration between_least{}, between_most{};  ///< From one fault to the next.
  std::uint32_t seed{};

  /// The duration from TENURE_CHAOS_SECONDS (else 120 s), the seed from TENURE_CHAOS_SEED (else drawn).
  static Plan from_environment(Clock::Duration term);
};

class Nemesis {
 public:
  /// Starts the candidates "c0", "c1", ...
  Nemesis(Fleet& fleet, const Plan& plan);

  /// Works until the duration is over, then lets all candidates go on, and stops them. Returns false if they no longer
  /// elect a leader, or if one does not stop, and says which.
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
  void tend(Clock::Time now);
  void restore();
  bool elect_and_end(std::ostream& log);

  Fleet& fleet_;
  Plan plan_;
  std::mt19937 random_;
  std::vector<Victim> victims_;
};

/// A summary of a run, for people.
void print(std::ostream& out, const Verdict& verdict);

}  // namespace tenure::test
