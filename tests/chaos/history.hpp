// SPDX-License-Identifier: Apache-2.0
// Judges whether the promise was kept, from the journal of the candidates and of what was done to them. It is a pure
// function: events in, verdict out.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "fleet.hpp"

namespace tenure::test {

/// The journal has the candidates' own events (candidate.cpp), and what was done to them. The latter is noted just
/// before it is done: "stopped" (SIGSTOP), "resumed" (SIGCONT), "killed" (SIGKILL), "asked to end" (SIGTERM).
namespace done_to {
inline constexpr auto stopped = "stopped", resumed = "resumed", killed = "killed", asked = "asked to end";
}

enum class Breach {
  overlap,     ///< Two tenures were valid at one instant.
  token,       ///< A token was not above all before it, or belonged to two tenures.
  hooks,       ///< Not (elected ousting)*, or something after stop() had returned.
  revival,     ///< A candidate that was stopped for longer than its term took itself for the leader afterwards.
  term,        ///< A deadline further away than term - margin.
  unfinished,  ///< A tenure never ended, although its candidate did so gracefully.
};

std::string to_string(Breach);

struct Finding {
  Breach breach;
  std::string what;
};

struct Verdict {
  std::vector<Finding> findings;
  std::size_t tenures{};
  std::map<std::string, std::size_t> faults;  ///< What was done, how often.
  std::size_t to_leaders{};                   ///< Of those, to one that led.
  Clock::Duration smallest_gap{Clock::Duration::max()}, largest_overlap{};

  std::size_t count(Breach) const;
};

/// A tenure counts as valid from the first sample (or elected(), if a sample confirms it) to its last known deadline.
/// It ends earlier with the death of its process, with the return of ousting(), and if it was superseded with the last
/// sample that saw it. So every overlap that is reported was one. An overlap between two samples can be missed.
Verdict judge(const std::vector<Event>& journal);

}  // namespace tenure::test
