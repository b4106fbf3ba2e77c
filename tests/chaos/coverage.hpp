// SPDX-License-Identifier: Apache-2.0
// Judges whether elections that several may lead had a leader at every instant, from the journal of the candidates and
// of what was done to them. It is a pure function: events in, gaps out.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "fleet.hpp"

namespace tenure::test {

/// A time in which no candidate is known to have led the election.
struct Gap {
  std::string election;
  Clock::Time from, to;
};

/// The gaps of each of these elections between `from` and `to`. A candidate led for certain from a sample to the
/// deadline that the last of its samples in a row told, or to its death ("killed"). Once a sample or a hook says
/// that it leads no longer, that stretch ended with the last sample before. So each instant that is no gap had a
/// leader, and a gap may have had one.
std::vector<Gap> gaps(const std::vector<Event>& journal, const std::set<std::string>& elections, Clock::Time from,
                      Clock::Time to);

}  // namespace tenure::test
