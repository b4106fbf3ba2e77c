// SPDX-License-Identifier: Apache-2.0
#include "history.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace tenure::test {
namespace {

using Time = Clock::Time;

struct Tenure {
  Token token;
  std::string who;
  std::optional<Time> elected, first, last, ended, followed;
  Time until{Time::min()};
  bool given_up{};  ///< By the candidate itself: valid until ousting() returned.

  bool sampled() const { return first.has_value(); }
  Time begin() const { return elected && *elected < until ? std::min(*elected, *first) : *first; }
  Time seen() const { return elected ? (first ? std::min(*elected, *first) : *elected) : *first; }
};

/// One process from its start to its end.
struct Candidate {
  std::string who;
  Clock::Duration term{}, margin{};
  std::vector<Tenure> tenures;
  std::optional<Token> open;  ///< Between elected and the return of ousting.
  bool ousting{}, over{};
  std::optional<Time> killed, stopped, resumed;
  std::set<Token> before_pause;  ///< Those that a pause of more than a term has ended.
};

std::string number(Token token) { return std::to_string(token.value); }

class Judge {
 public:
  Verdict run(const std::vector<Event>& journal) {
    for (const auto& event : journal) take(event);
    for (auto& [pid, candidate] : living_) dead_.push_back(std::move(candidate));
    for (const auto& candidate : dead_) gather(candidate);
    judge_overlaps();
    judge_tokens();
    return std::move(verdict_);
  }

 private:
  void find(Breach breach, const std::string& what) { verdict_.findings.push_back({breach, what}); }

  void take(const Event& e) {
    if (e.what == "start") {
      if (living_.contains(e.pid)) dead_.push_back(std::move(living_[e.pid]));
      living_[e.pid] = {};
      living_[e.pid].who = e.name + " (" + std::to_string(e.pid) + ")";
      living_[e.pid].term = e.term;
      living_[e.pid].margin = e.margin;
      return;
    }
    const auto found = living_.find(e.pid);
    if (found == living_.end()) return;
    auto& candidate = found->second;
    if (e.what == done_to::stopped || e.what == done_to::resumed || e.what == done_to::killed ||
        e.what == done_to::asked)
      return befalls(candidate, e);
    if (candidate.over) find(Breach::hooks, candidate.who + ": " + e.what + " after stop() had returned");
    if (e.what == "lead") return lead(candidate, e);
    hook(candidate, e);
  }

  void befalls(Candidate& c, const Event& e) {
    ++verdict_.faults[e.what];
    const auto& t = c.tenures;
    if (!t.empty() && t.back().until > e.at && !t.back().ended) ++verdict_.to_leaders;
    if (e.what == done_to::killed) c.killed = e.at;
    if (e.what == done_to::stopped) c.stopped = e.at;
    if (e.what == done_to::resumed) c.resumed = e.at;
    // Whatever was asked for before the pause ended in it.
    if (e.what == done_to::resumed && c.stopped && e.at >= *c.stopped + c.term)
      for (const auto& tenure : t) c.before_pause.insert(tenure.token);
  }

  Tenure& tenure(Candidate& c, Token token) {
    // Not always the latest: the thread that samples may write late.
    for (auto& t : c.tenures)
      if (t.token == token) return t;
    Tenure made;
    made.token = token;
    made.who = c.who;
    return c.tenures.emplace_back(std::move(made));
  }

  void lead(Candidate& c, const Event& e) {
    auto& t = tenure(c, e.token);
    if (!t.first) t.first = e.after;
    t.last = e.after;
    t.until = e.until;
    if (e.until - e.at > c.term - c.margin)
      find(Breach::term, c.who + ": token " + number(e.token) + " was valid for longer than term - margin");
    // A sample that began before the resumption may have looked before the pause.
    if (c.before_pause.contains(e.token) && e.at > *c.resumed)
      find(Breach::revival, c.who + ": token " + number(e.token) + " lived through a pause of a term");
  }

  void hook(Candidate& c, const Event& e) {
    const auto wrong = [&](const char* why) {
      find(Breach::hooks, c.who + ": " + e.what + " of token " + number(e.token) + " " + why);
    };
    if (e.what == "elected") {
      if (c.open) wrong("before the tenure before it had ended");
      if (std::any_of(c.tenures.begin(), c.tenures.end(),
                      [&](const Tenure& t) { return t.token == e.token && t.elected; }))
        find(Breach::token, c.who + ": token " + number(e.token) + " twice");
      c.open = e.token;
      c.ousting = false;
      tenure(c, e.token).elected = e.at;
    } else if (e.what == "ousting") {
      if (c.open != e.token || std::exchange(c.ousting, true)) return wrong("that was not elected");
      tenure(c, e.token).given_up = e.reason != "superseded" && e.reason != "lapsed";
    } else if (e.what == "ended") {
      if (c.open != e.token || !c.ousting) return wrong("without ousting");
      c.open.reset();
      tenure(c, e.token).ended = e.at;
    } else if (e.what == "follow" && !c.tenures.empty()) {
      c.tenures.back().followed = e.at;
    } else if (e.what == "quit") {
      c.over = true;
      if (c.open) find(Breach::unfinished, c.who + ": quit with token " + number(*c.open) + " not ousted");
    }
  }

  static Time end_of(const Tenure& t, const Candidate& c) {
    auto end = t.until;
    if (c.killed) end = std::min(end, *c.killed);
    if (t.given_up && t.ended) end = std::min(end, *t.ended);
    if (t.given_up) return end;
    // Taken away by the store at a moment that we do not know.
    const bool taken = (t.ended && *t.ended < end) || (t.followed && *t.followed < end);
    return taken ? std::min(end, *t.last) : end;
  }

  void gather(const Candidate& c) {
    for (const auto& t : c.tenures) {
      if (t.elected || t.first) all_.push_back({t, {}, {}});
      if (t.elected) ++verdict_.tenures;
      if (!t.sampled()) continue;
      all_.back().begin = t.begin();
      all_.back().end = end_of(t, c);
    }
  }

  void judge_overlaps() {
    std::vector<const Span*> valid;
    for (const auto& span : all_)
      if (span.begin < span.end) valid.push_back(&span);
    std::sort(valid.begin(), valid.end(), [](auto* a, auto* b) { return a->begin < b->begin; });
    const Span* latest = nullptr;  // of those before, the one that ends last
    for (const auto* span : valid) {
      if (latest != nullptr) {
        const auto gap = span->begin - latest->end;
        verdict_.smallest_gap = std::min(verdict_.smallest_gap, gap);
        if (gap < Clock::Duration::zero()) {
          const auto together = std::min(latest->end, span->end) - span->begin;
          verdict_.largest_overlap = std::max(verdict_.largest_overlap, together);
          find(Breach::overlap, latest->tenure.who + " with token " + number(latest->tenure.token) + " and " +
                                    span->tenure.who + " with token " + number(span->tenure.token) + " for " +
                                    std::to_string(together.count() / 1000) + " us");
        }
      }
      if (latest == nullptr || span->end > latest->end) latest = span;
    }
  }

  void judge_tokens() {
    std::vector<const Tenure*> order;
    for (const auto& span : all_) order.push_back(&span.tenure);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->seen() < b->seen(); });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (order[i]->token <= order[i - 1]->token)
        find(Breach::token, order[i]->who + " leads with token " + number(order[i]->token) + " after " +
                                order[i - 1]->who + " with token " + number(order[i - 1]->token));
  }

  struct Span {
    Tenure tenure;
    Time begin, end;
  };

  Verdict verdict_;
  std::map<pid_t, Candidate> living_;
  std::vector<Candidate> dead_;
  std::vector<Span> all_;
};

}  // namespace

std::string to_string(Breach breach) {
  switch (breach) {
    case Breach::overlap: return "overlap";
    case Breach::token: return "token";
    case Breach::hooks: return "hooks";
    case Breach::revival: return "revival";
    case Breach::term: return "term";
    case Breach::unfinished: return "unfinished";
  }
  return "?";
}

std::size_t Verdict::count(Breach breach) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.breach == breach; }));
}

Verdict judge(const std::vector<Event>& journal) { return Judge().run(journal); }

}  // namespace tenure::test
