// SPDX-License-Identifier: Apache-2.0
// Turns the samples of a journal into stretches, and finds the gaps between them.
#include "coverage.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "history.hpp"

namespace tenure::test {
namespace {

using Time = Clock::Time;

struct Stretch {
  Time from, to;
};

/// What one process leads, by its samples in a row.
struct Lead {
  Time from, last, until;
};

class Samples {
 public:
  void take(const Event& e) {
    auto& led = by_process_[e.pid];
    if (e.what == "lead" || (e.what == "elected" && e.until > e.at)) {
      const auto it = led.try_emplace(e.election, Lead{e.after, e.after, e.until}).first;
      sampled(e.election, it->second, {e.after, e.after, e.until});
    } else if (e.what == "holds") {
      for (auto& [election, lead] : led) sampled(election, lead, {e.after, e.at, e.until});
    } else if (e.what == "follow" || e.what == "ousting") {
      const auto it = led.find(e.election);
      if (it == led.end()) return;
      keep(it->first, {it->second.from, it->second.last});
      led.erase(it);
    } else if (e.what == done_to::killed) {
      for (const auto& [election, lead] : led) keep(election, {lead.from, std::min(lead.until, e.at)});
      led.clear();
    }
  }

  /// All stretches of each election.
  std::map<std::string, std::vector<Stretch>> all() && {
    for (const auto& [pid, led] : by_process_)
      for (const auto& [election, lead] : led) keep(election, {lead.from, lead.until});
    return std::move(stretches_);
  }

 private:
  void sampled(const std::string& election, Lead& lead, const Lead& now) {
    if (lead.until < now.last) keep(election, {std::exchange(lead.from, now.from), lead.until});  // It had lapsed.
    lead.last = now.last;
    lead.until = now.until;
  }
  void keep(const std::string& election, Stretch stretch) { stretches_[election].push_back(stretch); }

  std::map<pid_t, std::map<std::string, Lead>> by_process_;
  std::map<std::string, std::vector<Stretch>> stretches_;
};

}  // namespace

std::vector<Gap> gaps(const std::vector<Event>& journal, const std::set<std::string>& elections, Time from, Time to) {
  Samples samples;
  for (const auto& event : journal) samples.take(event);
  auto all = std::move(samples).all();
  std::vector<Gap> out;
  for (const auto& election : elections) {
    auto& led = all[election];
    std::sort(led.begin(), led.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
    auto covered = from;
    for (const auto& stretch : led) {
      if (stretch.from > covered && covered < to) out.push_back({election, covered, std::min(stretch.from, to)});
      covered = std::max(covered, stretch.to);
    }
    if (covered < to) out.push_back({election, covered, to});
  }
  return out;
}

}  // namespace tenure::test
