// SPDX-License-Identifier: Apache-2.0
// Judges whether the promise was kept, from the journal of the candidates and of what was done to them. It is a pure
// function: events in, verdict out.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet.hpp"

namespace tenure::test {

enum class Breach {
  overlap,     ///< Two tenures were valid at one instant, or the work of one still ran.
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
  std::map<std::string, std::size_t> faults;      ///< What was done, how often.
  std::size_t to_leaders{};                       ///< Of those, to one that led.
  std::optional<Clock::Duration> smallest_gap{};  ///< From a tenure to the next; empty if none followed another.
  Clock::Duration largest_overlap{};

  std::size_t count(Breach) const;
};

/// Judges while the events come, so that a long journal need not be kept. The elections of a group are judged each for
/// itself. One thread uses it.
///
/// The work of a tenure that lapsed counts as a part of it, as long as ousting() runs and remaining() is not zero. A
/// tenure counts as valid from the first sample (or elected(), if a sample confirms it) to its last known deadline.
/// It ends earlier with the death of its process, with the return of ousting(), and if it was superseded with the last
/// sample that saw it. So every overlap that is reported was one. An overlap between two samples can be missed.
class History {
 public:
  History();
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void take(const Event& event);

  /// How many elections each process leads, by what it sampled last. A deadline that is over by then counts no more.
  std::map<pid_t, std::size_t> led(Clock::Time at) const;

  Verdict verdict() const;

 private:
  class Judge;
  struct Process;
  std::shared_ptr<Process> of(pid_t pid) const;
  void quits(Process& process);
  void befalls(const Event& event);

  std::map<std::string, Judge> judges_;
  std::map<pid_t, std::shared_ptr<Process>> living_;
  std::vector<Finding> findings_;  ///< Of no election.
  std::map<std::string, std::size_t> faults_;
  std::size_t to_leaders_{};
};

Verdict judge(const std::vector<Event>& journal);

}  // namespace tenure::test
