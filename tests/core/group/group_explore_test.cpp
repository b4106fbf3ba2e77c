// SPDX-License-Identifier: Apache-2.0
// Goal: no order of events makes two processes of a group lead one election at once, or work for it, or a token serve
// twice. Method: the orders of events, breadth first, of two real GroupCandidacies over the model of a store, up to a
// number of states.
//
// One clock for all moves by a tick, when nobody has anything left to do at once; a term is a few ticks. A process that
// pauses does nothing while time passes, and whatever it asked may take effect meanwhile. A request is answered, or
// takes effect unheard, or comes late, or never; it may come twice. Processes crash and begin anew, hooks take their
// time, who waits need not hear of a change, sessions vanish. The releases of a commit may come before the rest of it.
// Each run has a budget of such troubles.
//
// It is a reduction, and no proof: the number of states is bounded; clocks do not run apart; two requests at most are
// on their way without anybody who waits for them; nothing is random.
//
// Rules are those of core/src/group/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenure/kit/who.hpp>

#include "group_answers.hpp"

namespace tenure {

using Time = Clock::Time;
using Duration = Clock::Duration;

constexpr Duration tick{1};
constexpr StallLimits explored_stall{.after = 2 * tick, .pause = 3 * tick};
constexpr Timing explored{
    .term = 4 * tick, .renew = tick, .retry = tick, .margin = tick, .call = tick, .drain = tick, .clock_rate_error = 0};

/// What a state consists of. Times are relative to now, tokens to the highest one, and ids are ranked at the end.
///
/// Each structure is taken apart by naming all its members. So what comes to it later does not compile here until
/// somebody has decided whether it tells how a state goes on.
class GroupDigest {
 public:
  GroupDigest(Time now, Token highest, std::uint64_t version) : now_(now), highest_(highest), version_(version) {}

  void plain(std::uint64_t value) { tape_.push_back({false, value}); }
  void id(std::uint64_t value) { tape_.push_back({true, value}); }
  void id(SessionId session) { id(session.value); }
  void ids(const std::vector<std::uint64_t>& values) {
    plain(values.size());
    for (const auto value : values) id(value);
  }
  void token(Token t) { plain(t.value == 0 ? 0 : 1 + highest_.value - t.value); }
  /// All that is past by so much is alike.
  void time(Time at, Duration past = Duration::zero()) {
    if (at == Time::max()) return plain(9999);
    plain(static_cast<std::uint64_t>((at <= now_ - past ? -past : at - now_).count() + 1000));
  }
  void asked(Duration at) { plain(static_cast<std::uint64_t>((at - now_.time_since_epoch()).count() + 100'000)); }
  void text(const std::string& text) { plain(std::hash<std::string>()(text)); }
  void cursor(const std::string& cursor) { plain(cursor.empty() ? 9999 : version_ - std::stoull(cursor)); }
  void duration(Duration d) { plain(static_cast<std::uint64_t>(d.count())); }
  template <class Many>
  void texts(const Many& many) {
    plain(many.size());
    for (const auto& one : many) text(one);
  }
  void heir(const std::optional<SessionId>& session) {
    plain(session.has_value());
    if (session) id(*session);
  }
  void due(const std::set<std::pair<Time, std::string>>& moments) {
    plain(moments.size());
    for (const auto& [at, election] : moments) time(at), text(election);
  }

  void session(const Session& s) {
    const auto& [record, joined, names, weight, most] = s;
    const auto& [token_of, beat, who, released, term, when_asked, written_ms] = record;
    id(beat);  // The rest of the record is the same for all of them, and the store's clock stands still.
    plain(released);
    for (const std::uint64_t value : {std::uint64_t{joined}, names, std::uint64_t{weight}, std::uint64_t{most}})
      plain(value);
    if (!released) asked(when_asked);
  }
  void lead(const Lead& lead) {
    const auto& [token_of, by, released, to, step_down] = lead;
    token(token_of);
    id(by);
    plain(released);
    heir(to);
    plain(step_down.has_value());
    if (step_down) token(step_down->token);
  }
  void look(const Look& look) {
    const auto& [now_ms, marker, sessions, all_sessions, leads, unreadable, whole, at, retired, allotted] = look;
    plain(marker);  // The store's clock stands still.
    plain(whole);
    cursor(at);
    token(retired);
    plain(all_sessions);
    plain(sessions.size());
    for (const auto& [session_id, seen] : sessions) id(session_id), session(seen);
    plain(leads.size());
    for (const auto& [election, seen] : leads) text(election), lead(seen);
    plain(unreadable.size());
    for (const auto& [election, error] : unreadable) text(election);
    plain(allotted.has_value());
    if (allotted) texts(*allotted);
  }
  void committed(const Committed& c) {
    const auto& [granted, token_of, claimed, released, refused, not_renewed, seen] = c;
    EXPECT_TRUE(refused.empty()) << "no row is locked here";
    plain(granted);
    token(token_of);
    texts(claimed);
    texts(released);
    texts(not_renewed);
    look(seen);
  }
  void question(const GroupQuestion& q) {
    const auto& [number, what, when_asked, by] = q;  // Only one is outstanding, whatever its number.
    plain(what.index());
    time(when_asked, explored.term);
    time(by);
    if (const auto* open = std::get_if<ask::Open>(&what)) id(open->id), session(open->session);
    if (const auto* end = std::get_if<ask::End>(&what)) id(end->id), ids(end->beats), id(end->new_beat);
    if (const auto* await = std::get_if<ask::Await>(&what)) cursor(await->cursor);
    if (const auto* see = std::get_if<ask::See>(&what)) cursor(see->cursor);
    if (const auto* write = std::get_if<ask::Write>(&what)) commit(write->commit);
  }
  void store(const test::GroupModel& store) {
    plain(store.marker);
    token(store.retired);
    plain(store.oldest == 0 ? 0 : 1 + store.version - store.oldest);
    plain(store.sessions.size());
    for (const auto& [session_id, kept] : store.sessions) id(session_id), session(kept);
    plain(store.leads.size());
    for (const auto& [election, kept] : store.leads) {
      text(election);
      lead(kept.lead);
      plain(store.version - kept.changed);
    }
  }

  /// They are kept with each change. What is to be judged anew is not yet among them.
  void holders(const GroupCandidacy& c) {
    std::map<SessionId, std::size_t> held;
    for (const auto& [election, entry] : c.entries_)
      if (entry.holder) ++held[*entry.holder];
    EXPECT_EQ(c.held_, held);
    if (c.over_ || c.stopping_ || !c.started_ || !c.claims_stale_.empty() || c.all_claims_stale_) return;
    for (const auto& [election, entry] : c.entries_) EXPECT_EQ(entry.holder, c.holder_of(election, entry)) << election;
  }

  void process(const GroupCandidacy& c) {
    // Not of the state: who it is, its options, numbers that only grow, and what it has reported.
    const auto& [who, timing, draw, effects, last_id, pending, own, lapsed, ends_in_vain, rivals, seen_to, untold,
                 marker, marker_since, claims_from, highest, allotted, spoilt, entries, looked_through, spread,
                 hook_threads, overruns, hooks_hang, wanted, held, plan_stale, plan_again, planned, gather_until,
                 changed, gifts_wait, able, gifts_running, gifts, joined, names, tenures, ending, unrenewed, hook_due,
                 work_due, stalled, to_release, held_up, claims, claims_due, claims_stale, all_claims_stale, next_ask,
                 unheard, unseen, swept_in_vain, next_commit, commit_took, most_changes, unwritten, next_sweep,
                 next_look, next_whole, last_whole, whole_took, wait_from, deaf, last_wake, wakes, started, stopping,
                 over, last_error, repeats] = c;
    EXPECT_TRUE(effects.empty());
    outstanding(pending);
    this->own(own);
    this->own(lapsed);
    this->rivals(rivals);
    cursor(seen_to);
    plain(untold ? 1 + (pending && pending->question.id > *untold) : 0);
    plain(marker.value_or(99));
    time(marker_since, explored.term);
    time(claims_from);
    token(highest);
    plain(allotted.has_value());
    if (allotted) texts(*allotted);
    plain(spoilt.size());
    for (const auto& [election, one] : spoilt) {
      const auto& [error, since] = one;
      text(election), plain(error.has_value()), time(since, explored.term);
    }
    plain(entries.size());
    for (const auto& [election, entry] : entries) text(election), this->entry(entry, spread.on);
    holders(c);  // so `held` follows from the entries
    texts(wanted);
    plain(plan_stale);
    time(plan_again);
    time(planned, explored.term);
    if (spread.on) time(gather_until), time(changed), plain(gifts_wait), duration(commit_took);
    plain(gifts_running);
    plain(gifts.size());
    for (const auto& [election, to] : gifts) text(election), id(to);
    plain(joined);
    plain(names);
    plain(tenures);
    plain(overruns);
    EXPECT_FALSE(hooks_hang);
    texts(ending);
    texts(unrenewed);
    due(hook_due);
    due(work_due);
    plain(stalled.size());
    for (const auto& [election, last] : stalled) text(election), time(last, explored.term);
    plain(to_release.size());
    for (const auto& [election, given] : to_release) {
      const auto& [token_of, to] = given;
      text(election), token(token_of), heir(to);
    }
    EXPECT_TRUE(held_up.empty());
    plain(std::min<std::size_t>(most_changes, 16));  // no commit has more
    plain(std::min<std::size_t>(unwritten, 2));
    plain(static_cast<std::uint64_t>(ends_in_vain));
    texts(claims);
    due(claims_due);
    texts(claims_stale);
    plain(all_claims_stale);
    time(next_ask);
    plain(static_cast<std::uint64_t>(unheard));
    plain(static_cast<std::uint64_t>(unseen));
    plain(static_cast<std::uint64_t>(swept_in_vain));
    time(next_commit);
    time(next_sweep);
    time(next_look);
    time(next_whole);
    time(last_whole, explored.term);
    duration(whole_took);
    time(wait_from);
    plain(deaf);
    time(last_wake.value_or(Time::max()), explored.retry);
    plain(static_cast<std::uint64_t>(wakes));
    plain(started);
    plain(stopping);
    plain(over);
  }

  std::uint64_t value() const {
    std::vector<std::uint64_t> ids;
    for (const auto& [renamed, value] : tape_)
      if (renamed) ids.push_back(value);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::uint64_t digest = 0;
    for (const auto& [renamed, value] : tape_) {
      const auto rank = std::lower_bound(ids.begin(), ids.end(), value) - ids.begin();
      digest += 0x9e3779b97f4a7c15 + (renamed ? static_cast<std::uint64_t>(rank) : value);
      digest = (digest ^ (digest >> 30)) * 0xbf58476d1ce4e5b9;
      digest = (digest ^ (digest >> 27)) * 0x94d049bb133111eb;
      digest ^= digest >> 31;
    }
    return digest;
  }

 private:
  void outstanding(const std::optional<GroupCandidacy::Pending>& pending) {
    plain(pending.has_value());
    if (!pending) return;
    const LateCall& late = *pending;
    const auto& [excused, wedged, told] = late;
    question(pending->question);
    plain(excused);
    plain(wedged);
    plain(told);
    plain(pending->interrupted);
  }
  void own(const std::optional<GroupCandidacy::Own>& own) {
    plain(own.has_value());
    if (!own) return;
    const auto& [session_id, beats, lease, untold] = *own;
    const auto& [timing, deadline, end] = lease;  // The timing is an option.
    id(session_id);
    ids(beats);
    time(deadline);
    time(end);
    time(untold.value_or(Time::max()), explored.term);
  }
  void rivals(const Rivals& seen) {
    const auto& [rate, longest, rivals, absent_since, looked] = seen;  // The rate is an option.
    duration(longest);
    plain(rivals.size());
    for (const auto& [session_id, rival] : rivals) {
      // The spread is off.
      const auto& [last, bound, lease_end, heard, doubted, takes_from, let_more_lie, end_again, ends_in_vain] = rival;
      id(session_id);
      session(last);
      if (last.record.released) continue;
      time(lease_end);
      time(end_again);
      plain(static_cast<std::uint64_t>(ends_in_vain));
      asked(bound.end(Duration::zero()).time_since_epoch());
    }
    time(looked, explored.renew + explored.retry);
    plain(absent_since.size());
    for (const auto& [session_id, since] : absent_since) id(session_id), time(since, explored.term);
  }
  void seen_lead(const GroupCandidacy::SeenLead& seen) {
    const auto& [token_of, by, to, at, released, pushed] = seen;
    token(token_of);
    id(by);
    heir(to);
    if (to) time(at, explored.renew + explored.retry);  // It is asked only then.
    plain(released);
    plain(pushed);
  }
  void entry(const GroupCandidacy::Entry& entry, bool spread) {
    // Not of the state: what it has reported.
    const auto& [joined, doubted, lead, tenure, stall, not_before, cool_down, free_since, holder, able, repeats,
                 work_due, claim_due] = entry;
    plain(joined);
    plain(doubted);
    plain(lead.has_value());
    if (lead) seen_lead(*lead);
    plain(tenure.has_value());
    if (tenure) tenure_of(*tenure, stall.after);
    time(not_before);
    duration(cool_down);
    if (spread) time(free_since.value_or(Time::max()), explored.term);
    heir(holder);
    plain(able);
  }
  void tenure_of(const GroupCandidacy::Tenure& tenure, Duration stall_after) {
    const tenure::Tenure& own = tenure;
    const auto& [token_of, progressed, excused, ending] = own;
    const GroupCandidacy::Sharing& sharing = tenure;
    const auto& [by, cap, kept, to, free_at, given_back] = sharing;
    const auto& [stage, reason, drain_by, done_by, overrun_at, expired, overrun] = ending;
    token(token_of);
    id(by);
    if (stall_after > Duration::zero()) time(progressed, stall_after), time(excused, stall_after);
    plain(static_cast<std::uint64_t>(stage));
    plain(static_cast<std::uint64_t>(reason));
    for (const auto at : {drain_by, done_by, overrun_at}) time(at);
    plain(expired);
    plain(overrun);
    for (const auto& bounds : {cap, kept}) {
      plain(bounds.has_value());
      if (bounds) time(bounds->deadline), time(bounds->end);
    }
    time(free_at.value_or(Time::max()));
    heir(to);
    plain(given_back);
  }
  void commit(const Commit& c) {
    const auto& [by, beats, next, marker, claims, releases, ended, at_least, seen_to] = c;
    id(by);
    ids(beats);
    session(next);
    plain(marker);
    plain(claims.size());
    for (const auto& [election, expected] : claims) text(election), token(expected.value_or(Token{}));
    plain(releases.size());
    for (const auto& [election, token_of, to] : releases) text(election), token(token_of), heir(to);
    plain(ended.size());
    for (const auto one : ended) id(one);
    token(at_least);
    cursor(seen_to);
  }

  Time now_;
  Token highest_;
  std::uint64_t version_;
  std::vector<std::pair<bool, std::uint64_t>> tape_;
};

namespace {

/// How many troubles of each kind a run may have.
struct Budget {
  int unheard{}, late{}, twice{}, pauses{}, crashes{}, resigns{}, lost_sessions{}, early{}, progresses{}, forgotten{};
  int retired{};
  bool watched{};  ///< The work has to tell of its progress, as often as there is a budget for.
};

/// Kernel bits that a state owns: it is copied, and its processes draw from here.
std::uint64_t drawn = 0;

class State {
 public:
  State(std::size_t elections, Budget budget) : budget_(budget), elections_(elections) {
    drawn = drawn_;
    for (auto& p : processes_) begin(p);
    drawn_ = drawn;
  }

  std::string wrong;
  int stalls{};

  std::uint64_t digest() const {
    auto highest = highest_;
    GroupDigest d(now_, highest, store_.version);
    d.store(store_);
    for (const auto& p : processes_) {
      d.process(p.candidacy);
      d.id(p.session);
      d.time(p.deadline);
      for (std::size_t e = 0; e < elections_; ++e) {
        d.token(p.led[e].token);
        d.id(p.led[e].session);
        d.time(p.led[e].cap);
        d.plain(p.ousting[e]);
        d.plain(p.works[e].runs);
        if (p.works[e].runs) d.id(p.works[e].session);
        for (const auto at : {p.works[e].lease_end, p.works[e].cap, p.works[e].done_by}) d.time(at);
        d.time(p.worked[e], explored_stall.after);
        d.time(p.barred_to[e]);
      }
      d.plain(p.paused);
      d.plain(p.asked.has_value());
      d.plain(p.answer.has_value());
      d.plain(p.given_back.size());
      if (p.answer) std::visit([&d](const auto& answer) { add(d, answer); }, *p.answer);
    }
    for (std::size_t e = 0; e < elections_; ++e) d.token(tokens_[e]);
    d.plain(strays_.size());
    for (const auto& stray : strays_) d.question(stray);
    for (const int left :
         {budget_.unheard, budget_.late, budget_.twice, budget_.pauses, budget_.crashes, budget_.resigns,
          budget_.lost_sessions, budget_.early, budget_.progresses, budget_.forgotten, budget_.retired})
      d.plain(static_cast<std::uint64_t>(left));
    return d.value();
  }

  /// Calls it with every state that may be next.
  template <class Each>
  void next(Each each) const {
    const auto move = [&](auto step) {
      auto state = *this;
      drawn = state.drawn_;
      step(state);
      state.drawn_ = drawn;
      state.judge();
      each(std::move(state));
    };
    if (std::none_of(processes_.begin(), processes_.end(), [&](const auto& p) { return busy(p); }))
      move([](State& s) { s.now_ += tick; });
    for (std::size_t i = 0; i < processes_.size(); ++i) next_of(i, move);
    for (std::size_t i = 0; i < strays_.size(); ++i) {
      move([i](State& s) {
        const auto stray = s.strays_[i];
        s.strays_.erase(s.strays_.begin() + static_cast<std::ptrdiff_t>(i));
        s.carried_out(stray);
      });
    }
    if (budget_.forgotten > 0) move([](State& s) { --s.budget_.forgotten, s.store_.forget_cursors(); });
    if (budget_.retired > 0)
      for (const auto& [election, kept] : store_.leads)
        move([election = election](State& s) { --s.budget_.retired, s.store_.retire(election); });
    if (budget_.lost_sessions > 0)
      for (const auto& [id, session] : store_.sessions)
        move([id = id](State& s) { --s.budget_.lost_sessions, s.store_.sessions.erase(id); });
  }

  bool led() const {
    return std::any_of(processes_.begin(), processes_.end(), [&](const auto& p) { return leads(p, 0); });
  }

 private:
  struct Led {
    Token token{};
    SessionId session{};
    Time cap{Time::max()};
  };
  /// Its work from elected() on. It obeys Ousting::remaining(), and stops with the lease at the latest.
  struct Work {
    bool runs{};
    SessionId session{};
    Time lease_end{}, cap{Time::max()}, done_by{Time::max()};
  };
  struct Process {
    GroupCandidacy candidacy{who_text({"p", ""}, "life"), explored, [] { return drawn += 2; }, Spread{.on = false}};
    std::optional<GroupQuestion> asked{};
    std::optional<test::GroupAnswer> answer{};  ///< On its way.
    SessionId session{};
    Time deadline{};
    std::array<Led, 2> led{};
    std::array<bool, 2> ousting{};
    std::array<Work, 2> works{};
    std::array<Time, 2> worked{}, barred_to{};  ///< When its work told that it goes on; until when it may not lead.
    bool paused{};
    std::vector<std::string> given_back{};  ///< Of what it asked, these releases have.
  };

  static const Commit& commit_of(const GroupQuestion& q) { return std::get<ask::Write>(q.what).commit; }

  static std::string name(std::size_t e) { return e == 0 ? "e" : "f"; }
  static std::size_t number(const std::string& name) { return name == "e" ? 0 : 1; }

  template <class T>
  static void add(GroupDigest& d, const Result<T>& answer) {
    d.plain(static_cast<bool>(answer));
    if (!answer) return;
    if constexpr (std::is_same_v<T, Committed>) {
      d.committed(*answer);
    } else if constexpr (std::is_same_v<T, Look>) {
      d.look(*answer);
    } else {
      d.plain(static_cast<std::uint64_t>(*answer));
    }
  }

  template <class Move>
  void next_of(std::size_t i, Move move) const {
    const auto& p = processes_[i];
    if (p.paused) return next_of_paused(i, move);
    if (budget_.pauses > 0 && (p.asked || p.led[0].token.value != 0))
      move([i](State& s) { --s.budget_.pauses, s.processes_[i].paused = true; });
    if (p.candidacy.next_alarm() <= now_) move([i](State& s) { s.fact(i, [&](auto& c) { c.tick(s.now_); }); });
    for (std::size_t e = 0; e < elections_; ++e) {
      if (p.ousting[e])
        move([i, e](State& s) {
          s.processes_[i].ousting[e] = false;
          s.processes_[i].works[e] = {};
          s.fact(i, [&](auto& c) { c.ousting_returned(s.now_, name(e)); });
        });
      if (budget_.resigns > 0 && leads(p, e) && !p.ousting[e])
        move([i, e](State& s) {
          --s.budget_.resigns;
          s.fact(i, [&](auto& c) { c.resign(s.now_, name(e), tick); });
        });
      if (budget_.progresses > 0)
        move([i, e](State& s) {
          --s.budget_.progresses;
          s.processes_[i].worked[e] = s.now_;
          s.processes_[i].barred_to[e] = {};
        });
    }
    if (budget_.crashes > 0)
      move([i](State& s) {
        --s.budget_.crashes;
        auto& dead = s.processes_[i];
        if (dead.asked && !dead.answer) s.stray(*dead.asked);
        dead = Process{};
        s.begin(dead);
      });
    if (!p.asked) return;
    if (std::holds_alternative<ask::Await>(p.asked->what)) {
      if (std::get<ask::Await>(p.asked->what).cursor != std::to_string(store_.version) || p.asked->by <= now_)
        move([i](State& s) { s.wake(i); });
      return;
    }
    move([i](State& s) { s.tell(i, s.carried_out(i)); });
    if (budget_.unheard > 0)
      move([i](State& s) {
        --s.budget_.unheard;
        s.carried_out(i);
        s.tell(i, test::no_answer(*s.processes_[i].asked));
      });
    if (may_give_back(p)) move([i](State& s) { s.give_back(i); });
    if (strays_.size() >= 2) return;
    if (budget_.late > 0)
      move([i](State& s) {
        --s.budget_.late;
        s.stray(*s.processes_[i].asked);
        s.tell(i, test::no_answer(*s.processes_[i].asked));
      });
    if (budget_.twice > 0)
      move([i](State& s) {
        --s.budget_.twice;
        s.stray(*s.processes_[i].asked);
        s.tell(i, s.carried_out(i));
      });
  }

  bool may_give_back(const Process& p) const {
    const auto* write = p.asked ? std::get_if<ask::Write>(&p.asked->what) : nullptr;
    return budget_.early > 0 && write && !write->commit.releases.empty() && p.given_back.empty() &&
           store_.may_be_granted(write->commit);
  }
  void give_back(std::size_t i) {
    --budget_.early;
    processes_[i].given_back = store_.give_back(commit_of(*processes_[i].asked));
  }

  /// It has something to do at once.
  bool busy(const Process& p) const {
    if (p.paused) return false;
    const bool waits = p.asked && std::holds_alternative<ask::Await>(p.asked->what) && p.asked->by > now_;
    return p.candidacy.next_alarm() <= now_ || (p.asked && !waits);
  }

  template <class Move>
  void next_of_paused(std::size_t i, Move move) const {
    const auto& p = processes_[i];
    const bool waits = p.asked && std::holds_alternative<ask::Await>(p.asked->what);
    if (p.asked && !waits && !p.answer) move([i](State& s) { s.processes_[i].answer = s.carried_out(i); });
    if (p.asked && !p.answer && may_give_back(p)) move([i](State& s) { s.give_back(i); });
    move([i](State& s) {  // It goes on; what came meanwhile may come before its clock does.
      auto& goes_on = s.processes_[i];
      goes_on.paused = false;
      if (goes_on.answer) s.tell(i, *std::exchange(goes_on.answer, std::nullopt));
    });
  }

  void stray(const GroupQuestion& question) {
    if (strays_.size() < 2 && question.what.index() != 2 && question.what.index() != 5) strays_.push_back(question);
  }

  void begin(Process& p) {
    for (std::size_t e = 0; e < elections_; ++e)
      p.candidacy.join(now_, name(e), budget_.watched ? explored_stall : StallLimits{});
    p.candidacy.start(now_);
    take(p);
  }
  void wake(std::size_t i) {
    const auto id = std::exchange(processes_[i].asked, std::nullopt)->id;
    fact(i, [&](auto& c) { c.awaited(now_, id, std::nullopt); });
  }
  void tell(std::size_t i, test::GroupAnswer answer) {
    const auto id = std::exchange(processes_[i].asked, std::nullopt)->id;
    processes_[i].given_back.clear();
    fact(i, [&](auto& c) { test::hand(c, now_, id, std::move(answer)); });
  }
  template <class Fact>
  void fact(std::size_t i, Fact fact) {
    auto& p = processes_[i];
    for (const auto& election : p.candidacy.progress_due(now_))
      p.candidacy.progressed(election, p.worked[number(election)]);
    fact(p.candidacy);
    take(processes_[i]);
  }

  /// What a process asked, or what is left of it.
  test::GroupAnswer carried_out(std::size_t i) {
    auto& p = processes_[i];
    test::GroupAnswer out = carried_out(*p.asked);
    if (auto* committed = std::get_if<Result<Committed>>(&out); committed && *committed)
      for (auto& election : std::exchange(p.given_back, {})) (*committed)->released.push_back(std::move(election));
    return out;
  }
  test::GroupAnswer carried_out(const GroupQuestion& q) {
    return test::carried_out(store_, q, [] { return std::uint64_t{1}; });
  }

  void take(Process& p) {
    std::vector<GroupEffect> effects;
    p.candidacy.take_effects(effects);
    bool interrupted = false;
    for (auto& effect : effects) {
      std::visit([&](auto& e) { carry_out(p, e); }, effect);
      interrupted |= std::holds_alternative<group_effect::Interrupt>(effect);
    }
    if (!interrupted || !p.asked) return;
    const auto id = std::exchange(p.asked, std::nullopt)->id;
    p.candidacy.awaited(now_, id, std::nullopt);
    take(p);
  }
  void carry_out(Process& p, group_effect::Ask& e) { p.asked = std::move(e.question); }
  void carry_out(Process& p, group_effect::Publish& e) {
    p.session = e.session, p.deadline = e.deadline;
    for (auto& work : p.works)
      if (work.runs && work.session == e.session) work.lease_end = e.deadline + explored.margin;
  }
  void carry_out(Process& p, group_effect::Withdraw&) { p.session = {}; }
  void carry_out(Process& p, group_effect::Lead& e) {
    const auto number_of = number(e.election);
    p.led[number_of] = {e.token, e.session};
    auto& highest = tokens_[number_of];
    if (e.token <= highest) wrong = "a token that does not rise";
    highest = std::max(highest, e.token);
    highest_ = std::max(highest_, e.token);
    if (now_ < p.barred_to[number_of]) wrong = "it leads again, and its work stalled";
    p.worked[number_of] = std::max(p.worked[number_of], now_);
  }
  void carry_out(Process& p, group_effect::Cap& e) {
    p.led[number(e.election)].cap = e.at;
    p.works[number(e.election)].cap = e.at == Time::max() ? e.at : e.at + explored.margin;
  }
  void carry_out(Process& p, group_effect::Begin& e) {
    p.works[number(e.election)] = {.runs = true, .session = p.session, .lease_end = p.deadline + explored.margin};
  }
  void carry_out(Process& p, group_effect::DoneBy& e) { p.works[number(e.election)].done_by = e.at; }
  void carry_out(Process& p, group_effect::Unlead& e) { p.led[number(e.election)] = {}; }
  void carry_out(Process& p, group_effect::End& e) {
    const auto number_of = number(e.election);
    p.ousting[number_of] = true;
    if (e.reason != Reason::stalled) return;
    ++stalls;
    if (now_ < p.worked[number_of] + explored_stall.after) wrong = "it stalled, and its work goes on";
    p.barred_to[number_of] = now_ + explored_stall.pause;
  }
  template <class Other>
  void carry_out(Process&, Other&) {}

  bool leads(const Process& p, std::size_t e) const {
    const auto& led = p.led[e];
    return led.token.value != 0 && led.session == p.session && now_ < std::min(p.deadline, led.cap);
  }
  void judge() {
    for (const auto& [election, kept] : store_.leads) highest_ = std::max(highest_, kept.lead.token);
    const auto works = [&](const Process& p, std::size_t e) {
      const auto& work = p.works[e];
      return work.runs && now_ < std::min({work.lease_end, work.cap, work.done_by});
    };
    for (std::size_t e = 0; e < elections_; ++e) {
      if (leads(processes_[0], e) && leads(processes_[1], e)) wrong = "two leaders";
      if (works(processes_[0], e) && works(processes_[1], e)) wrong = "the work of two";
    }
  }

  Budget budget_;
  std::size_t elections_;
  Time now_{Time{Duration{1'000'000}}};
  std::uint64_t drawn_{1000};
  test::GroupModel store_{};
  std::array<Process, 2> processes_{};
  std::vector<GroupQuestion> strays_{};  ///< On their way. Nobody waits for them.
  std::array<Token, 2> tokens_{};
  Token highest_{};
};

struct Explored {
  std::size_t states{}, with_leader{}, stalled{}, depth{};
  bool complete{};
  std::string wrong{};
};

Explored explore(std::size_t elections, Budget budget, std::size_t most) {
  Explored out;
  std::unordered_set<std::uint64_t> known;
  std::vector<State> layer{State(elections, budget)};
  known.insert(layer.front().digest());
  while (!layer.empty() && out.wrong.empty() && known.size() < most) {
    std::vector<State> following;
    for (const auto& state : layer) {
      state.next([&](State next) {
        if (!next.wrong.empty()) out.wrong = next.wrong;
        if (!known.insert(next.digest()).second) return;
        out.with_leader += next.led();
        out.stalled += next.stalls > 0;
        following.push_back(std::move(next));
      });
      if (!out.wrong.empty() || known.size() >= most) break;
    }
    layer = std::move(following);
    ++out.depth;
  }
  out.states = known.size();
  out.complete = layer.empty();
  return out;
}

/// By the number of states.
class GroupExplore : public testing::TestWithParam<std::size_t> {
 protected:
  static Explored clean(const char* what, std::size_t elections, Budget budget) {
    const auto found = explore(elections, budget, GetParam());
    EXPECT_EQ(found.wrong, "") << "after " << found.depth << " steps";
    EXPECT_GT(found.with_leader, 0u);
    std::printf("%s: %zu states, %zu with a leader, depth %zu%s\n", what, found.states, found.with_leader, found.depth,
                found.complete ? ", complete" : "");
    return found;
  }
};

TEST_P(GroupExplore, NoTrouble) { clean("no trouble", 1, {}); }
TEST_P(GroupExplore, OneUnheard) { clean("one request unheard", 1, {.unheard = 1}); }
TEST_P(GroupExplore, OneLate) { clean("one request late", 1, {.late = 1}); }
TEST_P(GroupExplore, OneTwice) { clean("one request twice", 1, {.twice = 1}); }
TEST_P(GroupExplore, OnePause) { clean("one pause", 1, {.pauses = 1}); }
TEST_P(GroupExplore, OneCrash) { clean("one crash", 1, {.crashes = 1}); }
TEST_P(GroupExplore, OneResign) { clean("one resigns", 1, {.resigns = 1}); }
TEST_P(GroupExplore, WorkThatStalls) {
  EXPECT_GT(clean("work that stalls", 1, {.progresses = 2, .watched = true}).stalled, 0u);
}
TEST_P(GroupExplore, StallsPausesAndLate) {  // Few states may come before the first stall.
  const auto found =
      clean("stalls, pauses and late requests", 1, {.late = 1, .pauses = 1, .progresses = 1, .watched = true});
  EXPECT_TRUE(found.stalled > 0 || GetParam() < 25'000);
}
TEST_P(GroupExplore, OneLostSession) { clean("a lost session", 1, {.lost_sessions = 1}); }
TEST_P(GroupExplore, PausesAndLate) { clean("pauses and late requests", 1, {.late = 2, .pauses = 2}); }
TEST_P(GroupExplore, AllTroubles) {
  clean("all troubles", 1,
        {.unheard = 1, .late = 1, .twice = 1, .pauses = 1, .crashes = 1, .resigns = 1, .lost_sessions = 1});
}
TEST_P(GroupExplore, ReleasesThatComeFirst) {
  clean("releases that come first", 1, {.resigns = 2, .early = 2});
  clean("the same, and pauses, crashes and what is unheard or late", 1,
        {.unheard = 1, .late = 1, .pauses = 1, .crashes = 1, .resigns = 2, .early = 2});
}
TEST_P(GroupExplore, CursorsThatAreForgotten) {
  clean("forgotten cursors, a pause and what is unheard", 1, {.unheard = 1, .pauses = 1, .resigns = 1, .forgotten = 2});
}
TEST_P(GroupExplore, RetiredNames) {
  clean("retired names, pauses, crashes and what is late", 1,
        {.late = 1, .pauses = 1, .crashes = 1, .resigns = 2, .retired = 2});
}
TEST_P(GroupExplore, TwoElections) { clean("two elections", 2, {.late = 1, .pauses = 1, .resigns = 1}); }

// A sanitizer sees in few states what it sees in many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Quick, GroupExplore, testing::Values(3'000), testing::PrintToStringParamName());
#else
INSTANTIATE_TEST_SUITE_P(Quick, GroupExplore, testing::Values(8'000), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Long, GroupExplore, testing::Values(25'000), testing::PrintToStringParamName());
#endif

}  // namespace
}  // namespace tenure
