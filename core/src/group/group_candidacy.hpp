// SPDX-License-Identifier: Apache-2.0
// Every decision of a process that takes part in many elections of a group, and nothing else: facts go in, effects come
// out. There is no thread here, no I/O, no clock and no randomness but what it is handed, and it can be copied.
// README.md beside it has the rules, by number.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/group_store.hpp>
#include <tenure/hooks.hpp>
#include <tenure/kit/repeats.hpp>
#include <tenure/spread.hpp>
#include <tenure/timing.hpp>

#include "election/late_call.hpp"
#include "election/lease.hpp"
#include "election/tenure.hpp"
#include "group/rivals.hpp"
#include "group/spread.hpp"
#include "kit/random.hpp"

namespace tenure {

namespace ask {
// clang-format off
struct Open { SessionId id; Session session; };
struct Write { Commit commit; };
struct See { std::string cursor; };
struct End { SessionId id; std::vector<std::uint64_t> beats; std::uint64_t new_beat; };
struct Sweep {};
struct Await { std::string cursor; };
// clang-format on
}  // namespace ask

/// A question to the store. `asked` was taken before it left, and the session's lease runs from there.
struct GroupQuestion {
  std::uint64_t id{};
  std::variant<ask::Open, ask::Write, ask::See, ask::End, ask::Sweep, ask::Await> what{};
  Clock::Time asked{}, by{};
};

namespace group_effect {
// clang-format off
struct Ask { GroupQuestion question; };             ///< No other one is outstanding.
struct Interrupt {};                                ///< Nobody waits for the outstanding answer any more.
struct Publish { SessionId session; Clock::Time deadline; };  ///< What the session leads, it leads until then.
struct Withdraw {};                                 ///< The session leads nothing any more.
struct Lead { std::string election; Token token; SessionId session; };  ///< is_leader() holds as long as the session's.
struct Cap { std::string election; Clock::Time at; };  ///< is_leader() ends there, however long the session runs on.
struct Joined { std::string election; };            ///< The next question may name it.
struct Left { std::string election; };              ///< We take part no more, and no hook of it runs.
struct Changed {};                                  ///< Who leads what, as seen in the store, is no longer the same.
struct Ended { bool store_wedged; };                ///< stop() has done its work.
// clang-format on
using effect::Unlead, effect::Begin, effect::FireStop, effect::DoneBy, effect::End, effect::FireExpired,
    effect::Overrun, effect::Report;
}  // namespace group_effect

using GroupEffect = std::variant<group_effect::Ask, group_effect::Interrupt, group_effect::Publish,
                                 group_effect::Withdraw, group_effect::Lead, group_effect::Cap, group_effect::Unlead,
                                 group_effect::Begin, group_effect::FireStop, group_effect::DoneBy, group_effect::End,
                                 group_effect::FireExpired, group_effect::Overrun, group_effect::Joined,
                                 group_effect::Left, group_effect::Report, group_effect::Changed, group_effect::Ended>;

class GroupCandidacy {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;
  using Effect = GroupEffect;

  /// `who`: who_text() of a candidate. `draw`: random bits of the kernel. `hook_threads`: so many hooks can run at
  /// once.
  GroupCandidacy(std::string who, const Timing& timing, std::function<std::uint64_t()> draw, const Spread& spread = {},
                 std::size_t hook_threads = SIZE_MAX);

  // Facts. `now` never falls from one fact to the next.
  void start(Time now);
  /// False: it was joined before.
  bool join(Time now, const std::string& election, StallLimits stall = {});
  void leave(Time now, const std::string& election);
  void resign(Time now, const std::string& election, std::optional<Duration> cool_down);
  void hand_over(Time now, const std::string& election, const std::string& to);
  void stop(Time now);
  void committed(Time now, std::uint64_t id, Result<Committed> result);  ///< Open, Write
  void looked(Time now, std::uint64_t id, Result<Look> result);
  void ended(Time now, std::uint64_t id, const Result<bool>& result);
  void swept(Time now, std::uint64_t id, const Result<int>& result);
  void awaited(Time now, std::uint64_t id, const std::optional<Release>& pushed);
  void wait_failed(Time now, std::uint64_t id, Error error);
  void ousting_returned(Time now, const std::string& election);
  /// Whether hooks hold all their threads, another one waits for one of them, and none has begun for a term.
  void hooks_hang(Time now, bool hang);
  /// The work told then that it goes on. Comes before the next fact for all of progress_due(): that one decides.
  void progressed(const std::string& election, Time at);
  void tick(Time now);

  /// Of which we must know by now when their work went on last.
  std::vector<std::string> progress_due(Time now) const;

  /// When tick() is due, if no other fact comes first.
  Time next_alarm() const;

  /// Until when our lease lets us lead, if we have one.
  std::optional<Time> deadline() const { return own_ ? std::optional(own_->lease.deadline) : std::nullopt; }
  /// Until when the present question should be answered. Never, if there is none.
  Time answer_by() const { return pending_ ? pending_->question.by : Time::max(); }
  /// Until when the ousting() that has outlasted its time most, or will do so first, should return.
  Time work_by() const;

  /// What the store did last in place of an answer. Nothing, once it has answered.
  const std::shared_ptr<const Error>& last_error() const { return last_error_; }

  /// The effects since the last call. They are carried out in this order. `into` is cleared, and its room is used
  /// again.
  void take_effects(std::vector<GroupEffect>& into);

  /// Who else leads it, as the store said last.
  std::optional<Incumbent> incumbent(const std::string& election, Time now) const;
  /// What we have joined and nobody is known to lead, we included.
  std::vector<std::string> unled(Time now) const;
  /// Who hand_over() would hand it to, if anybody.
  std::optional<SessionId> heir_named(Time now, const std::string& election, const std::string& to) const;
  bool over() const { return over_; }
  std::uint64_t joined() const { return joined_; }
  /// How many tenures ended because of their work, which has not gone on since, so that we do not contend.
  std::uint64_t stalled() const { return stalled_.size(); }
  /// At how many elections it looked one after the other so far. Tests hold that against the number of changes.
  std::size_t looked_through() const { return looked_through_; }
  /// So many entries have its maps. Tests hold that against what is joined.
  std::size_t kept() const { return entries_.size() + claims_due_.size() + work_due_.size() + held_up_.size(); }

 private:
  friend class GroupDigest;  ///< Of the tests: states that go on alike have one number.

  struct Pending : LateCall {
    GroupQuestion question{};
    bool interrupted{};
  };
  struct Own {
    SessionId id{};
    std::vector<std::uint64_t> beats{};  ///< The acknowledged one, and every one sent since.
    Lease lease{};
    /// When the last commit was asked that was granted, and whose answer told no leads. The lease counts from there
    /// once a look has told them: until then another may lead what we believe to lead.
    std::optional<Time> untold{};
  };
  /// Of a lease.
  struct Bounds {
    Time deadline{}, end{};
  };
  /// What a tenure has because it shares its lease with others.
  struct Sharing {
    SessionId session{};
    std::optional<Bounds> cap{};      ///< The work took longer than the drain: its lease is renewed no more.
    std::optional<Bounds> kept{};     ///< The session was renewed since, and this tenure was not.
    std::optional<SessionId> heir{};  ///< To whom it is handed over.
    std::optional<Time> free_at{};    ///< It leads no more. From then on it is given back, though its work may run.
    bool given_back{};                ///< The store is told, although ousting() may still run.
  };
  struct Tenure : tenure::Tenure, Sharing {};
  /// What counts of a lead, in few bytes: there are as many as elections.
  struct SeenLead {
    Token token{};
    SessionId session{};
    std::optional<SessionId> heir{};
    Time at{};  ///< When we saw it first.
    bool released{};
    bool pushed{};  ///< Its release was only pushed: it may be late or forged.
    bool shows(const Lead& lead) const {
      return token == lead.token && session == lead.session && heir == lead.heir && released == lead.released;
    }
  };
  /// One election that we take part in, or whose tenure has not ended yet.
  struct Entry {
    bool joined{};
    bool doubted{};                  ///< The store refused our last claim, and nothing explains that.
    std::optional<SeenLead> lead{};  ///< As seen last, ours included.
    std::optional<Tenure> tenure{};
    StallLimits stall{};
    Time not_before{Time::min()};       ///< No claim earlier.
    Duration cool_down{};               ///< Begins when the lead is given back.
    std::optional<Time> free_since{};   ///< It is one of claims_.
    std::optional<SessionId> holder{};  ///< For whom it counts in the shares.
    bool able{};                        ///< We lead it and go on, or may lead it as soon as it is free.
    Repeats repeats{};                  ///< Of trouble with its record alone.
    Time work_due{Time::max()};         ///< Its moment of work_due_.
    Time claim_due{Time::max()};        ///< Its moment of claims_due_.
  };
  /// A lead that cannot be read, or could not be until a moment ago.
  struct Spoilt {
    std::optional<Error> error{};  ///< nullopt: it can be read again,
    Time since{};                  ///< as we saw then.
  };
  struct Due {
    Token token{};
    std::optional<SessionId> heir{};
  };
  /// What the store could not write.
  struct HeldUp {
    std::optional<Due> due{};  ///< A release, which is due then,
    Time again{};
    int tries{};
    bool alone{};  ///< A commit with nothing else was not answered: it goes with nothing else again.
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  const Rivals::Rival* leader_by(const SeenLead& lead, Time now) const;
  std::optional<Pending> settle(Time now, std::uint64_t id);
  void opened(Time now, const GroupQuestion& asked, const ask::Open& open, Committed& result);
  void abandon(const ask::Open& open);
  void written(Time now, const GroupQuestion& asked, const ask::Write& write, Committed& result);
  void write_less(Time now, const Commit& commit, const Error& why);
  void write_more(const Commit& commit);
  std::size_t changes_now(Time now) const;
  void elect(Time now, const std::string& election, Token token, Token at_least);
  void extend(Time asked);
  void keep_unrenewed(const std::vector<std::string>& elections);
  void cap(const std::string& election, const Tenure& tenure);
  Bounds bounds_of(const Tenure& tenure) const {
    return tenure.kept ? *tenure.kept : Bounds{own_->lease.deadline, own_->lease.end};
  }
  void plan_next_commit(Time asked, Time now, std::int64_t store_ms);
  void heard();
  void unanswered(Time now, Error error);
  void absorb(Time now, Look look);
  void tell_joined(Time now, const GroupQuestion& asked, bool whole);
  void absorb_sessions(Time now, const Look& look);
  void sessions_changed(Time now);
  void absorb_marker(Time now, const Look& look);
  void absorb_leads(Time now, Look& look);
  void absorb_unreadable(Time now, const Look& look);
  void tell_unreadable(const std::string& election);
  bool is_unreadable(std::string_view election) const;
  Time readable_from(std::string_view election) const;
  void doubt(Time now);
  Time hold_up(Time now, const std::string& election, const Error& why);
  void hold_up_claim(Time now, const std::string& election, Entry& entry, const Error& why);
  bool goes_alone(const std::string& election) const {
    const auto it = held_up_.find(election);
    return it != held_up_.end() && it->second.alone;
  }
  void take_up(Time now);
  bool releases_later(const std::string& election) const {
    const auto it = held_up_.find(election);
    return it != held_up_.end() && it->second.due;
  }
  void absorb_allotted(Time now, std::optional<std::set<std::string>> allotted);
  bool is_allotted(const std::string& election) const { return !allotted_ || allotted_->contains(election); }
  void settle_lead(Time now, const std::string& election, const Lead& lead);
  void settle_changes(Time now, const Commit& commit, const Committed& result);
  void judge_own(Time now, const Look& look);
  void lose_session(Time now, Reason reason, const std::string& detail, Time done_by);
  void judge_expiry(Time now);
  void lapse(const std::string& election, Tenure& tenure, Time lease_end);
  void judge_unrenewed(Time now);
  void watch_progress(Time now);
  Time watch_work(Time now, const std::string& election, Entry& entry);
  void watch_work_at(Time at, const std::string& election, Entry& entry);
  void watch_hooks(Time now);
  void watch_store(Time now);
  void ask_next(Time now);
  void ask_last(Time now);
  void ask_in_session(Time now);
  void ask_sweep(Time now);
  void ask_open(Time now);
  void ask_look(Time now);
  void ask_commit(Time now);
  void ask_end(Time now, SessionId id, std::vector<std::uint64_t> beats);
  void gather(Commit& commit, std::size_t most, bool alone) const;
  Time next_due() const;
  Time needed_until() const;
  /// A store that allots judges the others' leases itself.
  std::optional<std::pair<SessionId, Time>> next_to_end() const {
    return allotted_ ? std::nullopt : rivals_.next_to_end();
  }
  void ask(Time now, decltype(GroupQuestion::what) what, Time by);
  Duration patience() const;
  Duration patience_beside_a_lease(Time now, bool for_all_leads) const;
  void end_voluntarily(Time now, const std::string& election, Entry& entry, Reason reason, std::string detail);
  void end_at_once(Time now, const std::string& election, Entry& entry, Reason reason, const std::string& detail,
                   Time done_by);
  void give_back(const std::string& election, Tenure& tenure);
  void give_back_unled(const std::string& election);
  void cool_off(Time now, Entry& entry);
  void find_claims(Time now);
  void judge(Time now, const std::string& election, Entry& entry);
  Time judge_claim(Time now, const std::string& election, Entry& entry);
  void judge_at(Time at, const std::string& election, Entry& entry);
  void watch_hook(Time now, const std::string& election, Tenure& tenure);
  void count_overrun(Time now, int by);
  void tell_full(Time now, bool was_full);
  /// Of what begins now, nobody would be told.
  bool hooks_full() const { return hooks_hang_ || overruns_ >= hook_threads_; }
  void watch_later(const std::string& election, const Tenure& tenure);
  /// Whoever sees the end of a session may lead at once what that led.
  Time end_from() const { return tenures_ > 0 ? lapsed_->lease.end : Time::min(); }
  Time free_from(const std::optional<SeenLead>& lead) const;
  bool is_heir(const std::optional<SeenLead>& lead) const;
  bool alone() const;
  void plan(Time now);
  void want(const std::string& election);
  bool is_able(Time now, const Entry& entry) const;
  bool all_heard(Time now) const;
  std::uint32_t most_now() const;
  Member member_of(Time now, SessionId id, const Rivals::Rival& rival) const;
  void give(Time now, Holdings seen, std::size_t excess, std::map<SessionId, std::size_t> room);
  void give_to(Time now, const std::string& election, SessionId heir, const std::string& detail);
  void name_heirs(Time now);
  std::optional<SessionId> holder_of(const std::string& election, const Entry& entry) const;
  void count_for(Entry& entry, std::optional<SessionId> holder);
  void count_able(Entry& entry, bool able);
  std::size_t held_by(SessionId session) const;
  Holdings numbers(Time now) const;
  void tell_led(Holdings& seen);
  bool takes_the_same(const Session& session) const;
  bool takes_part(Time now, const Rivals::Rival& rival) const;
  const SeenLead* lead_of(std::string_view election) const;
  Entry* part_in(std::string_view election);
  void forget_leads(const Look* but_of = nullptr);
  Session own_session(Time asked);
  void end(bool wedged);
  /// Within this the others see a release, also where nothing is pushed: with their renewals. A store that allots
  /// needs nobody to see it.
  Duration others_look() const { return allotted_ ? timing_.retry : timing_.renew + timing_.retry; }
  Duration longest() const { return std::max(timing_.term, rivals_.longest()); }
  Duration jittered(Duration d) { return tenure::jittered(d, draw_()); }
  void trouble(Time now, Error error);
  void report(Time now, Error error, const std::string& election = {});
  /// For what looks at every election. No fact does that for one change.
  Entries& all_entries() {
    looked_through_ += entries_.size();
    return entries_;
  }
  void forget(Entries::iterator entry);
  void emit(GroupEffect effect) {
    if (!over_) effects_.push_back(std::move(effect));  // Facts may come later, such as the return of a wedged call.
  }
  auto emitter() {
    return [this](auto effect) { emit(std::move(effect)); };
  }

  std::string who_;
  Timing timing_;
  std::function<std::uint64_t()> draw_;
  std::vector<GroupEffect> effects_;
  std::uint64_t last_id_{0};
  std::optional<Pending> pending_;

  std::optional<Own> own_;     ///< Our session.
  std::optional<Own> lapsed_;  ///< Our session that is over, and that the store is not told of yet.
  int ends_in_vain_{};         ///< So many in a row did not end that.
  Rivals rivals_;              ///< The other sessions.
  std::string cursor_;
  std::optional<std::uint64_t> untold_;  ///< Something was joined after that question was asked: a look must tell it.
  std::optional<std::uint64_t> marker_;
  Time marker_since_{};                            ///< When this marker was first seen.
  Time claims_from_{Time::min()};                  ///< The store lost data: until then nothing is claimed.
  Token highest_{};                                ///< Of every lead that we ever saw.
  std::optional<std::set<std::string>> allotted_;  ///< To us, by a store that allots.
  std::map<std::string, Spoilt, std::less<>> spoilt_;

  Entries entries_;
  std::size_t looked_through_{};
  Spread spread_;
  std::size_t hook_threads_;
  std::size_t overruns_{};  ///< So many ousting() run on, and have outlasted their time.
  bool hooks_hang_{};
  std::set<std::string, std::less<>> wanted_;  ///< Of claims_, what is ours to claim by the spread.
  std::map<SessionId, std::size_t> held_;      ///< How many entries have this holder. None has zero.
  bool plan_stale_{true};
  Time plan_again_{Time::max()};  ///< Without any news.
  Time planned_{Time::min()};     ///< When it was done last.
  Time gather_until_{
      Time::min()};  ///< Before that, nothing is shared out: others may still come. Who is alone does not wait.
  Time changed_{Time::min()};                            ///< Sessions came or went then.
  bool gifts_wait_{};                                    ///< Until all members were heard since.
  std::size_t able_{};                                   ///< How many entries are.
  std::size_t gifts_running_{};                          ///< Tenures that end because we hand them over.
  std::deque<std::pair<std::string, SessionId>> gifts_;  ///< Those to come, as long as nobody comes or goes.
  std::uint32_t joined_{};
  std::uint64_t names_{};
  std::size_t tenures_{};                             ///< How many entries have one.
  std::set<std::string, std::less<>> ending_;         ///< Whose tenures are not leading.
  std::set<std::string, std::less<>> unrenewed_;      ///< Whose tenures have a lease of their own, by which they end.
  std::set<std::pair<Time, std::string>> hook_due_;   ///< When to look at one of them again. May hold moments too many.
  std::set<std::pair<Time, std::string>> work_due_;   ///< When to look at the work again: once for each election.
  std::map<std::string, Time, std::less<>> stalled_;  ///< Whose work hangs. It was told of last then.
  std::map<std::string, Due, std::less<>> to_release_;  ///< Leads that name our session, and that we do not lead.
  std::map<std::string, HeldUp, std::less<>> held_up_;  ///< What could not be written.

  std::set<std::string, std::less<>> claims_;          ///< What may be claimed now.
  std::set<std::pair<Time, std::string>> claims_due_;  ///< When to judge one again, by time alone: once for each.
  std::vector<std::string> claims_stale_;              ///< Of which something changed, so that they are judged anew,
  bool all_claims_stale_{true};                        ///< or of all.

  Time next_ask_{Time::min()};  ///< After an unanswered question.
  int unheard_{};               ///< So many in a row were not answered while we had no session.
  int unseen_{};                ///< So many looks in a row were not answered.
  int swept_in_vain_{};         ///< So many sweeps in a row removed nothing.
  Time next_commit_{Time::max()};
  Duration commit_took_{};                 ///< The last one that was granted.
  std::size_t most_changes_{max_changes};  ///< Of one commit.
  std::size_t unwritten_{};                ///< So many commits with changes in a row were not answered.
  Time next_sweep_{Time::max()};
  Time next_look_{Time::max()};
  Time next_whole_{Time::max()};  ///< When all leads are to be looked at, also those of which no change was told.
  Time last_whole_{Time::min()};  ///< When that was asked last.
  Duration whole_took_{};         ///< The last answer that told all leads.
  Time wait_from_{Time::min()};   ///< No wait earlier.
  bool deaf_{};                   ///< The last wait failed: nothing is pushed.
  std::optional<Time> last_wake_;
  int wakes_{};  ///< So many in a row came soon after another.
  bool started_{}, stopping_{}, over_{};
  std::shared_ptr<const Error> last_error_;  ///< Of the store, while it has not answered since.
  Repeats repeats_;
};

}  // namespace tenure
