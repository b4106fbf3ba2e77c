// SPDX-License-Identifier: Apache-2.0
// The rules by which a journal is judged.
#include "history.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace tenure::test {
namespace {

using Time = Clock::Time;

std::string number(Token token) { return std::to_string(token.value); }

}  // namespace

/// One process from its start to its end, and what was done to it.
struct History::Process {
  std::string who;
  Clock::Duration term{}, margin{};
  bool over{};
  std::optional<Time> killed, stopped;
  std::optional<Time> revived;  ///< Resumed after a pause of more than a term, which ended all tenures of before.
  std::size_t pauses{};         ///< So many such pauses.
};

/// Of one election.
class History::Judge {
 public:
  void take(const Event& e, const std::shared_ptr<Process>& process) {
    auto& c = candidates_[process.get()];
    c.process = process;
    if (e.what == "lead") return lead(c, e);
    hook(c, e);
  }

  /// All that was led at the last sample is led on.
  void holds(const Event& e, const Process* process) {
    const auto c = candidates_.find(process);
    if (c != candidates_.end() && c->second.held) sampled(c->second, tenure(c->second, *c->second.held), e);
  }

  void quits(const Process* process) {
    const auto c = candidates_.find(process);
    if (c != candidates_.end() && c->second.open)
      find(Breach::unfinished, process->who + ": quit with token " + number(*c->second.open) + " not ousted");
  }

  bool leads(const Process* process, Time at) const {
    const auto c = candidates_.find(process);
    if (c == candidates_.end() || c->second.tenures.empty()) return false;
    const auto& last = c->second.tenures.back();
    return last.until > at && !last.ended;
  }
  bool holds_at(const Process* process, Time at) const {
    const auto c = candidates_.find(process);
    return c != candidates_.end() && c->second.held && leads(process, at);
  }

  void judge(Verdict& verdict, const std::string& election) const {
    Account account{verdict, election.empty() ? "" : election + ": ", {}};
    for (const auto& finding : findings_) account.find(finding.breach, finding.what);
    for (const auto& [process, candidate] : candidates_) gather(candidate, account);
    judge_overlaps(account);
    judge_tokens(account);
  }

 private:
  struct Tenure {
    Token token;
    const Process* process{};
    std::size_t pauses{};  ///< Of its process when it became known.
    std::optional<Time> elected, ended, followed;
    std::optional<Time> first_from, first, last;  ///< The first sample lies between the first two.
    Time until{Time::min()};
    bool given_up{};               ///< By the candidate itself: valid until ousting() returned.
    Time work_until{Time::min()};  ///< It lapsed, and by remaining() its work may run for so long.

    Time begin() const { return elected && *elected < until ? std::min(*elected, *first) : *first; }
    std::string who() const { return process->who + " with token " + number(token); }
  };

  /// What one process did in this election.
  struct Candidate {
    std::shared_ptr<Process> process;
    std::vector<Tenure> tenures;
    std::optional<Token> open;  ///< Between elected and the return of ousting.
    std::optional<Token> held;  ///< By the last sample.
    bool ousting{};
  };

  struct Span {
    const Tenure* tenure;
    Time begin, end;
  };

  struct Account {
    Verdict& verdict;
    std::string prefix;
    std::vector<Span> all;
    void find(Breach breach, const std::string& what) { verdict.findings.push_back({breach, prefix + what}); }
  };

  void find(Breach breach, const std::string& what) { findings_.push_back({breach, what}); }

  static Tenure& tenure(Candidate& c, Token token) {
    // Not always the latest: the thread that samples may write late.
    for (auto t = c.tenures.rbegin(); t != c.tenures.rend(); ++t)
      if (t->token == token) return *t;
    Tenure made;
    made.token = token;
    made.process = c.process.get();
    made.pauses = c.process->pauses;
    return c.tenures.emplace_back(std::move(made));
  }

  void lead(Candidate& c, const Event& e) {
    c.held = e.token;
    sampled(c, tenure(c, e.token), e);
  }

  void sampled(const Candidate& c, Tenure& t, const Event& e) {
    const auto& p = *c.process;
    if (!t.first) t.first_from = e.at, t.first = e.after;
    t.last = e.at;
    t.until = e.until;
    if (e.until - e.after > p.term - p.margin)
      find(Breach::term, p.who + ": token " + number(t.token) + " was valid for longer than term - margin");
    // A sample that began before the resumption may have looked before the pause.
    if (p.pauses > t.pauses && e.at > *p.revived)
      find(Breach::revival, p.who + ": token " + number(t.token) + " lived through a pause of a term");
  }

  void hook(Candidate& c, const Event& e) {
    const auto wrong = [&](const char* why) {
      find(Breach::hooks, c.process->who + ": " + e.what + " of token " + number(e.token) + " " + why);
    };
    if (e.what == "elected") {
      if (c.open) wrong("before the tenure before it had ended");
      auto& t = tenure(c, e.token);
      if (t.elected) find(Breach::token, c.process->who + ": token " + number(e.token) + " twice");
      c.open = e.token;
      c.ousting = false;
      t.elected = e.at;
      if (e.until > e.at && !t.first) sampled(c, t, e);  // it has looked, too
    } else if (e.what == "ousting") {
      if (c.open != e.token || std::exchange(c.ousting, true)) return wrong("that was not elected");
      auto& t = tenure(c, e.token);
      t.given_up = e.reason != "superseded" && e.reason != "lapsed";
      if (e.reason == "lapsed") t.work_until = e.until;
    } else if (e.what == "ended") {
      if (c.open != e.token || !c.ousting) return wrong("without ousting");
      c.open.reset();
      tenure(c, e.token).ended = e.at;
    } else if (e.what == "follow") {
      c.held.reset();
      if (!c.tenures.empty()) c.tenures.back().followed = e.at;
    }
  }

  /// It is led, or its work may still run.
  static Time end_of(const Tenure& t) {
    auto work = t.work_until;
    if (t.process->killed) work = std::min(work, *t.process->killed);
    if (t.ended) work = std::min(work, *t.ended);
    return std::max(end_of_lead(t), work);
  }

  static Time end_of_lead(const Tenure& t) {
    auto end = t.until;
    if (t.process->killed) end = std::min(end, *t.process->killed);
    if (t.given_up && t.ended) end = std::min(end, *t.ended);
    if (t.given_up) return end;
    // Taken away by the store at a moment that we do not know.
    const bool taken = (t.ended && *t.ended < end) || (t.followed && *t.followed < end);
    return taken ? std::min(end, *t.last) : end;
  }

  static void gather(const Candidate& c, Account& account) {
    for (const auto& t : c.tenures) {
      if (t.elected) ++account.verdict.tenures;
      account.all.push_back({&t, {}, {}});
      if (!t.first) continue;
      account.all.back().begin = t.begin();
      account.all.back().end = end_of(t);
    }
  }

  static void judge_overlaps(Account& account) {
    auto& verdict = account.verdict;
    std::vector<const Span*> valid;
    for (const auto& span : account.all)
      if (span.begin < span.end) valid.push_back(&span);
    std::sort(valid.begin(), valid.end(), [](auto* a, auto* b) { return a->begin < b->begin; });
    const Span* latest = nullptr;  // of those before, the one that ends last
    for (const auto* span : valid) {
      if (latest != nullptr) {
        const auto gap = span->begin - latest->end;
        verdict.smallest_gap = std::min(verdict.smallest_gap.value_or(gap), gap);
        if (gap < Clock::Duration::zero()) {
          const auto together = std::min(latest->end, span->end) - span->begin;
          verdict.largest_overlap = std::max(verdict.largest_overlap, together);
          account.find(Breach::overlap, latest->tenure->who() + " and " + span->tenure->who() + " for " +
                                            std::to_string(together.count() / 1000) + " us");
        }
      }
      if (latest == nullptr || span->end > latest->end) latest = span;
    }
  }

  /// By the samples: elected() may be called late, by a process that was stopped meanwhile.
  static void judge_tokens(Account& account) {
    std::vector<const Tenure*> order;
    for (const auto& span : account.all) order.push_back(span.tenure);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->token > b->token; });
    const Tenure* earliest = nullptr;  // of those with a greater token
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto* t = order[i];
      if (i > 0 && order[i - 1]->token == t->token)
        account.find(Breach::token, order[i - 1]->process->who + " and " + t->who());
      else if (earliest && t->first_from && *t->first_from > *earliest->first)
        account.find(Breach::token, t->who() + " leads after " + earliest->who());
      if (t->first && (!earliest || *t->first < *earliest->first)) earliest = t;
    }
  }

  std::vector<Finding> findings_;
  std::map<const Process*, Candidate> candidates_;
};

History::History() = default;
History::~History() = default;

std::shared_ptr<History::Process> History::of(pid_t pid) const {
  const auto found = living_.find(pid);
  return found == living_.end() ? nullptr : found->second;
}

void History::take(const Event& e) {
  if (e.what == "start") {
    auto& process = living_[e.pid] = std::make_shared<Process>();
    process->who = e.name + " (" + std::to_string(e.pid) + ")";
    process->term = e.term;
    process->margin = e.margin;
    return;
  }
  static const std::set<std::string> done{done_to::stopped, done_to::resumed, done_to::killed, done_to::asked,
                                          done_to::muted,   done_to::crashed, done_to::frozen, done_to::put_out};
  if (done.contains(e.what)) return befalls(e);
  const auto process = of(e.pid);
  if (!process) return;
  if (process->over) findings_.push_back({Breach::hooks, process->who + ": " + e.what + " after stop() had returned"});
  if (e.what == "holds")
    for (auto& [election, judge] : judges_) judge.holds(e, process.get());
  else if (e.what == "elected" || e.what == "ousting" || e.what == "ended" || e.what == "lead" || e.what == "follow")
    judges_[e.election].take(e, process);
  else if (e.what == "quit")
    quits(*process);
}

void History::quits(Process& process) {
  process.over = true;
  for (auto& [election, judge] : judges_) judge.quits(&process);
}

void History::befalls(const Event& e) {
  const auto process = of(e.pid);
  if (!process && e.pid != 0) return;
  ++faults_[e.what];
  if (!process) return;
  to_leaders_ += std::any_of(judges_.begin(), judges_.end(),
                             [&](const auto& judge) { return judge.second.leads(process.get(), e.at); });
  if (e.what == done_to::killed) process->killed = e.at;
  if (e.what == done_to::stopped) process->stopped = e.at;
  // Whatever was asked for before the pause ended in it.
  if (e.what == done_to::resumed && process->stopped && e.at >= *process->stopped + process->term) {
    ++process->pauses;
    process->revived = e.at;
  }
}

std::map<pid_t, std::size_t> History::led(Clock::Time at) const {
  std::map<pid_t, std::size_t> out;
  for (const auto& [pid, process] : living_)
    if (!process->over && !process->killed)
      out[pid] = static_cast<std::size_t>(
          std::count_if(judges_.begin(), judges_.end(),
                        [at, holder = process.get()](const auto& judge) { return judge.second.holds_at(holder, at); }));
  return out;
}

Verdict History::verdict() const {
  Verdict verdict;
  verdict.findings = findings_;
  verdict.faults = faults_;
  verdict.to_leaders = to_leaders_;
  for (const auto& [election, judge] : judges_) judge.judge(verdict, election);
  return verdict;
}

Verdict judge(const std::vector<Event>& journal) {
  History history;
  for (const auto& event : journal) history.take(event);
  return history.verdict();
}

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

}  // namespace tenure::test
