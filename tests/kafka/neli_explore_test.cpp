// SPDX-License-Identifier: Apache-2.0
// Goal: no order of events makes two candidates lead at once, or a token serve twice. Method: the orders up to a depth,
// breadth first, of the real Neli of two candidates at a model of a group's coordinator.
//
// The model knows: joining, rebalances, any member as the owner, evictions, also of one that joins and is not told; a
// LeaveGroup that comes late; commits that are handled late, answered late or never, and those of a lost connection
// handled after newer ones. A commit carries the generation of the moment when it is handled, the worst that the client
// library does; one of a lost connection that of its loss. The coordinator judges member and generation, never
// ownership. One clock for all moves by a lease at a time, or by half of one: a lease is over or it is not.
//
// It is a reduction, and no proof. Some steps happen at once: a follower's hearing of its assignment, reads that
// nothing on its way can change, the renewed acquire of one that waited. Each run has a budget of faults, releases,
// steps of time and depth. Of two commits of one candidate that are both late, the older is handled first. Left out:
// stale reads of a coordinator of the past (the nonce is carried, not tried), clocks that differ, calls that their
// callers abandon, requests to step down, lost acknowledged commits, a third member. Foreign commits are all equal.
//
// Rules are those of backends/kafka/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "neli.hpp"

namespace tenure::kafka {

using namespace std::chrono_literals;

/// A number of a state. States that go on alike have equal numbers.
class Digest {
 public:
  void add(std::uint64_t value) {
    value_ += 0x9e3779b97f4a7c15 + value;
    value_ = (value_ ^ (value_ >> 30)) * 0xbf58476d1ce4e5b9;
    value_ = (value_ ^ (value_ >> 27)) * 0x94d049bb133111eb;
    value_ ^= value_ >> 31;
  }
  void add(const std::string& text) { add(std::hash<std::string>()(text)); }
  void add_flags(std::initializer_list<bool> flags) {
    std::uint64_t bits = 1;
    for (const bool flag : flags) bits = bits << 1 | std::uint64_t{flag};
    add(bits);
  }
  template <class T>
  void add(const std::optional<T>& maybe) {
    add(maybe.has_value());
    if (maybe) add(*maybe);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_{};
};

constexpr auto lease = 6000ms;
constexpr auto margin = 250ms;
constexpr auto patience = lease / 2;  ///< Of a caller.

class NeliState {
 public:
  explicit NeliState(const Neli& neli, Clock::Time now) : n_(neli), now_(now) {}

  std::optional<Commit> seen() const { return n_.view_.seen_ ? n_.view_.seen_->commit : std::nullopt; }
  bool tenure() const { return n_.tenure_.has_value(); }
  /// As its caller sees it: is_leader() is false before release() is called.
  bool leads() const {
    return n_.tenure_ && now_ < n_.tenure_->deadline && !(n_.call_ && n_.call_->verb == Verb::release);
  }
  std::string nonce() const { return n_.member_ ? n_.member_->nonce : std::string(); }
  std::string member() const { return n_.member_ ? n_.member_->member : std::string(); }
  std::uint64_t outstanding() const { return n_.member_ && n_.member_->outstanding ? n_.member_->outstanding->id : 0; }

  void digest(Digest& d) const {
    digest_call(d);
    digest_member(d);
    d.add(n_.tenure_.has_value());
    if (n_.tenure_) {
      d.add(n_.tenure_->token.value);
      d.add(until(n_.tenure_->deadline));
    }
    digest_record(d);
    digest_observer(d);
  }

 private:
  /// How far ahead; all that is past is alike.
  std::uint64_t until(Clock::Time at) const { return at <= now_ ? 0 : static_cast<std::uint64_t>((at - now_) / 1ms); }
  /// How long ago; all that is a lease ago is alike.
  std::uint64_t since(Clock::Time at) const { return until(at + lease); }
  std::uint64_t since(const std::optional<Clock::Time>& at) const { return at ? 1 + since(*at) : 0; }
  static std::uint64_t of(const std::optional<Error>& e) { return e ? 1 + static_cast<std::uint64_t>(e->fault) : 0; }

  void digest_call(Digest& d) const {
    d.add(n_.call_.has_value());
    if (n_.call_) {
      d.add(static_cast<std::uint64_t>(n_.call_->verb));
      d.add(until(n_.call_->by));
      d.add(n_.call_->seen.index());
      if (const auto* seen = std::get_if<Incumbent>(&n_.call_->seen)) {
        d.add(seen->token.value);
        d.add(seen->incarnation);
        d.add(seen->remaining > 0s);
      }
      d.add(n_.call_->verb == Verb::release ? since(n_.called_at_) : 0);
    }
    d.add(since(n_.last_asked_));
    d.add(n_.campaigning_);
    d.add(of(n_.told_));
    d.add(of(n_.member_.trouble));
    d.add(of(n_.observer_trouble_));
    d.add(n_.told_ == n_.trouble());
    d.add(n_.member_.leaving());
    d.add(n_.member_.leaving() ? until(n_.member_.leave_by()) : 0);
    d.add(of(n_.leave_error_));
    d.add(n_.member_.kept_rank_.empty());
  }
  void digest_member(Digest& d) const {
    d.add(until(n_.member_.may_open_at));
    d.add(bool(n_.member_));
    if (!n_.member_) return;
    const auto& m = *n_.member_;
    d.add_flags({m.assigned, n_.owner_, m.lost, m.keeps_rank, m.fenced, m.doubtful, m.nonce_stands, n_.believed_,
                 m.reading.has_value(), m.founder, m.late_claim, n_.made_room_, m.member.empty()});
    d.add(since(m.joined_at));
    d.add(n_.ranked_.value);
    d.add(since(m.owes_since));
    d.add(static_cast<std::uint64_t>(m.owed.count()));
    d.add(m.drain_by ? 1 + until(*m.drain_by) : 0);
    d.add(since(m.assigned_at));
    d.add(until(m.try_again));
    d.add(until(m.read_again));
    d.add(m.outstanding.has_value());
    if (!m.outstanding) return;
    d.add(static_cast<std::uint64_t>(m.outstanding->purpose));
    d.add(m.outstanding->token.value);
    d.add(since(m.outstanding->sent));
    d.add(n_.call_ && n_.call_->id == m.outstanding->call);
  }
  void digest_record(Digest& d) const {
    d.add(n_.unreleased_ ? 1 + n_.unreleased_->value : 0);
    const auto& view = n_.view_;
    d.add(view.seen_.has_value());
    if (view.seen_) d.add(since(view.seen_->first_seen));
    d.add(until(view.doubted_until_));
    d.add(since(view.stale_since_));
    d.add(since(view.absent_since_));
    d.add(view.highest_.value);
    d.add(view.least_.value);
    d.add(n_.tried_.value);
    d.add(view.ever_seen_);
  }
  void digest_observer(Digest& d) const {
    d.add_flags({n_.observing_, n_.check_topic_, n_.observing_ && n_.checks_, n_.rank_after_ == n_.observation_,
                 n_.rank_after_ == n_.observed_, n_.owner_search_.asking_, n_.owner_search_.told_,
                 n_.owner_search_.named_owner_});
    d.add(until(n_.observe_at_));
    d.add(until(n_.observe_until_));
    d.add(since(n_.owner_search_.since_));
  }

  const Neli& n_;
  Clock::Time now_;
};

namespace {

/// How the part between Neli and the broker behaves.
enum class Between {
  faithful,
  takes_unknown_for_refused,  ///< Rule 10 broken: after a commit of unknown outcome, the same handle claims again
  takes_second_for_first,     ///< Rule 23 broken: nobody is told that the client library sent a commit twice
  gives_up_when_revoked,      ///< Rule 13 broken: what waits inside the client library does not delay the unassign
};

constexpr int candidates = 2;

struct Step {
  enum Kind : std::uint8_t {
    tick,
    acquire,
    renew,
    release,
    observe,   // its observer's read is answered, while it is a member
    read,      // its member's read is answered, while a commit of another or an older one is on its way
    revoke,    // it hears of a rebalance
    complete,  // all have joined: it owns partition 0 from here on
    lose,      // it hears that it was evicted
    rejoin,    // it was evicted while it joined, so it joins anew, by another id
    serve,     // the coordinator handles its commit, and it hears the answer
    handle,    // ... handles its commit
    answer,    // ... and it hears the answer, later
    late,      // ... handles a commit that came by a connection of before
    cut,       // its connection is lost: no answer will come
    again,     // its connection is lost, and its client library sends its commit again by another one
    evict,
    leave,    // the LeaveGroup of a dropped handle arrives
    foreign,  // somebody else commits on partition 0, what a reset of the offsets does
    kinds
  };
  Kind kind{};
  std::uint8_t who{};
};

constexpr std::array<const char*, Step::kinds> names{
    "tick",  "acquire", "renew",  "release", "observe", "read",  "revoke", "complete", "lose",   "rejoin",
    "serve", "handle",  "answer", "late",    "cut",     "again", "evict",  "leave",    "foreign"};

struct Budget {
  std::uint8_t ticks{3}, cuts{1}, evictions{1}, releases{1}, sightings{1}, slow{1}, foreign{0};
  std::chrono::milliseconds tick{lease};
};

/// A candidate: its Neli, and what its client library and its caller know.
struct Member {
  explicit Member(int who)
      : neli({.lease = lease,
              .margin = margin,
              .observe_every = 1s,
              .name = std::string(1, static_cast<char>('a' + who)),
              .address = "",
              .incarnation = std::string(1, static_cast<char>('a' + who)),
              .first_claim_waits = false,
              .remote_step_down = false,
              .highest = {}}) {}
  Neli neli;
  std::uint64_t calls{}, handle{}, reading{}, observing{};
  std::optional<Verb> calling;
  bool evicted_joining{};
  std::uint64_t digested{};
};

/// One member of the group, from its joining on.
struct Joined {
  std::uint64_t id{}, handle{};
  std::uint8_t who{};
  bool ghost{};   ///< The handle was dropped; the coordinator does not know yet.
  bool ready{};   ///< Joined for the next generation.
  bool told{};    ///< Heard of the rebalance.
  bool counts{};  ///< Of the present generation: its commits are taken.
};

struct Sent {
  std::uint64_t handle{}, id{}, joined{};
  std::uint8_t who{};
  bool late{};     ///< By a lost connection; `joined` and the present generation are its stamp.
  bool handled{};  ///< With this outcome; not answered yet.
  bool again{};    ///< Sent before by a lost connection.
  Outcome outcome{};
  int partition{};
  Commit commit;
};

class World {
 public:
  explicit World(Between between, Budget budget) : between_(between), budget_(budget), foreign_(budget.foreign > 0) {
    for (int who = 0; who < candidates; ++who) members_[static_cast<std::size_t>(who)] = std::make_shared<Member>(who);
  }

  void steps(std::vector<Step>& out) const;
  void take(Step step);
  std::uint64_t digest();
  const std::string& violation() const { return violation_; }
  std::uint64_t granted() const { return granted_; }
  int leaders() const {
    int out = 0;
    for (const auto& m : members_) out += NeliState(m->neli, now_).leads();
    return out;
  }

 private:
  Member& edit(std::uint8_t who) {
    auto& m = members_[who];
    if (m.use_count() > 1) m = std::make_shared<Member>(*m);
    m->digested = 0;
    return *m;
  }
  Joined* joined(std::uint8_t who) {
    for (auto& j : group_)
      if (j.who == who && !j.ghost && j.handle == members_[who]->handle) return &j;
    return nullptr;
  }
  const Joined* joined(std::uint8_t who) const { return const_cast<World*>(this)->joined(who); }

  void give(std::uint8_t who, const Fact& fact) { give(who, fact, now_); }
  void give(std::uint8_t who, const Fact& fact, Clock::Time at);
  std::int64_t wall_clock(Clock::Time at) const;
  void call(std::uint8_t who, Verb verb, Token of = {}, Sight seen = Vacant{});
  void carry(std::uint8_t who, const effect::Open&);
  void carry(std::uint8_t who, const effect::Unassign&) { join(who); }
  void carry(std::uint8_t who, const effect::SendCommit&);
  void carry(std::uint8_t who, const effect::ReadMember& a) { edit(who).reading = a.id; }
  void carry(std::uint8_t who, const effect::Observe& a) { edit(who).observing = a.id; }
  void carry(std::uint8_t who, const effect::FindOwners&) {
    give(who, fact::OwnersFound{Error{Fault::unreachable, ""}});
  }
  void carry(std::uint8_t who, const effect::Drop&);
  void carry(std::uint8_t who, const effect::Reply&);
  void carry(std::uint8_t who, const effect::ReplyReleased&) { edit(who).calling.reset(); }
  void carry(std::uint8_t who, const effect::Wake&) { call(who, Verb::acquire); }
  template <class Other>
  void carry(std::uint8_t, const Other&) {}

  void join(std::uint8_t who);
  void rebalance();
  void remove(std::uint64_t joined_id);
  void complete(std::uint8_t owner);
  void pass_time();
  void revoke(std::uint8_t who);
  void handle(Sent& sent);
  void answer(std::uint8_t who);
  void cut(std::uint8_t who);
  void send_again(std::uint8_t who);
  void forget_what_is_refused();
  void tell(const Sent& sent, Outcome outcome);
  void settle();
  void digest_records(Digest& d) const;
  void observe(std::uint8_t who);
  void read(std::uint8_t who);
  void leave(std::uint8_t who);

  Between between_;
  Budget budget_;
  bool foreign_{};  ///< Foreign commits may stand.
  Clock::Time now_{1h};
  std::array<std::shared_ptr<Member>, candidates> members_;
  // The coordinator's
  std::vector<Joined> group_;
  std::uint64_t joinings_{};
  int generation_{};
  bool rebalancing_{};
  std::array<std::optional<Commit>, 2> records_;
  std::vector<Sent> sent_;

  std::uint64_t granted_{};  ///< The highest token that anybody led by.
  std::string violation_;
};

// ---- what may happen ----

void World::steps(std::vector<Step>& out) const {
  out.clear();
  if (budget_.ticks) out.push_back({Step::tick, 0});
  if (budget_.foreign) out.push_back({Step::foreign, 0});
  bool all_ready = rebalancing_ && !group_.empty();
  for (const auto& j : group_) {
    all_ready = all_ready && j.ready;
    if (j.ghost) out.push_back({Step::leave, j.who});
  }
  if (all_ready) {  // what comes meanwhile could have come before
    out.clear();
    for (const auto& j : group_) out.push_back({Step::complete, j.who});
    return;
  }
  for (std::uint8_t who = 0; who < candidates; ++who) {
    const auto& m = *members_[who];
    const NeliState state(m.neli, now_);
    if (!m.calling && !state.tenure()) out.push_back({Step::acquire, who});
    if (!m.calling && state.tenure()) out.push_back({Step::renew, who});
    if (!m.calling && state.tenure() && budget_.releases) out.push_back({Step::release, who});
    if (m.observing && budget_.sightings) out.push_back({Step::observe, who});
    if (m.reading) out.push_back({Step::read, who});
    if (!m.handle) continue;
    const auto* in = joined(who);
    if (!in) out.push_back({m.evicted_joining ? Step::rejoin : Step::lose, who});
    if (in && rebalancing_ && !in->ready && !in->told) out.push_back({Step::revoke, who});
    if (in && budget_.evictions) out.push_back({Step::evict, who});
  }
  for (const auto& s : sent_) {
    if (s.late) {
      out.push_back({Step::late, s.who});
      continue;
    }
    if (s.handled) {
      out.push_back({Step::answer, s.who});
    } else {
      out.push_back({Step::serve, s.who});
      if (budget_.slow) out.push_back({Step::handle, s.who});
    }
    if (budget_.cuts) out.push_back({Step::cut, s.who});
    if (budget_.cuts && joined(s.who)) out.push_back({Step::again, s.who});
  }
}

void World::take(Step step) {
  const auto who = step.who;
  const auto first = [&](bool late) {
    for (auto& s : sent_)
      if (s.who == who && s.late == late) return &s;
    return static_cast<Sent*>(nullptr);
  };
  switch (step.kind) {
    case Step::tick: pass_time(); break;
    case Step::acquire: call(who, Verb::acquire); break;
    case Step::renew: call(who, Verb::renew, Token{granted_}); break;
    case Step::release:
      --budget_.releases;
      call(who, Verb::release, Token{granted_});
      break;
    case Step::observe:
      --budget_.sightings;
      observe(who);
      break;
    case Step::read: read(who); break;
    case Step::revoke: revoke(who); break;
    case Step::complete: complete(who); break;
    case Step::lose: give(who, fact::Revoked{members_[who]->handle, true}); break;
    case Step::rejoin: join(who); break;
    case Step::handle:
      --budget_.slow;
      handle(*first(false));
      break;
    case Step::answer: answer(who); break;
    case Step::serve:
      handle(*first(false));
      answer(who);
      break;
    case Step::late: {
      auto& s = *first(true);
      handle(s);
      sent_.erase(sent_.begin() + (&s - sent_.data()));
      break;
    }
    case Step::cut: cut(who); break;
    case Step::again: send_again(who); break;
    case Step::evict:
      --budget_.evictions;
      edit(who).evicted_joining = joined(who)->ready;
      remove(joined(who)->id);
      break;
    case Step::leave: leave(who); break;
    case Step::foreign:
      --budget_.foreign;
      records_[0] = Commit{0, ""};
      break;
    case Step::kinds: break;
  }
  settle();
  if (leaders() > 1 && violation_.empty()) violation_ = "two lead at once";
}

/// Some steps change nothing by their moment. They happen at once, so that there are fewer orders to go through: a read
/// while no commit of another or of a lost connection is on its way; a LeaveGroup that no commit precedes.
void World::settle() {
  for (bool again = true; std::exchange(again, false);) {
    forget_what_is_refused();
    for (std::uint8_t who = 0; who < candidates; ++who) {
      bool quiet = true;
      for (const auto& s : sent_) quiet = quiet && s.who == who && !s.late;
      const auto& m = *members_[who];
      if (m.observing && !m.handle) {
        observe(who);
        again = true;
      } else if (m.reading && quiet) {
        read(who);
        again = true;
      }
    }
    for (const auto& j : group_) {
      bool preceded = false;
      for (const auto& s : sent_) preceded = preceded || (s.late && s.joined == j.id);
      if (!j.ghost || preceded) continue;
      leave(j.who);
      again = true;
      break;
    }
  }
}

void World::observe(std::uint8_t who) {
  give(who, fact::Observed{std::exchange(edit(who).observing, 0), records_[0], generation_ == 0 && group_.empty()});
}

void World::read(std::uint8_t who) {
  const Reading reading{records_[0], records_[1] ? records_[1]->metadata : std::string()};
  give(who, fact::MemberRead{std::exchange(edit(who).reading, 0), reading});
}

void World::leave(std::uint8_t who) {
  for (const auto& j : group_)
    if (j.who == who && j.ghost) {
      const auto handle = j.handle;
      remove(j.id);
      return give(who, fact::Left{handle});
    }
}

// ---- candidates ----

/// Only where foreign commits may stand it raises tokens, and makes more states.
std::int64_t World::wall_clock(Clock::Time at) const { return foreign_ ? at.time_since_epoch() / 1ms : 0; }

void World::give(std::uint8_t who, const Fact& fact, Clock::Time at) {
  for (const auto& next : edit(who).neli.on(fact, at, wall_clock(at)))
    std::visit([&](const auto& a) { carry(who, a); }, next);
}

void World::call(std::uint8_t who, Verb verb, Token of, Sight seen) {
  auto& m = edit(who);
  m.calling = verb;
  give(who, fact::Called{++m.calls, verb, now_ + patience, of, std::move(seen)});
}

/// A candidate that does not get the lead waits for news, as a manager does.
void World::carry(std::uint8_t who, const effect::Reply& reply) {
  const auto verb = std::exchange(edit(who).calling, std::nullopt);
  if (verb != Verb::acquire) return;
  if (const auto* granted = std::get_if<Granted>(&reply.answer)) {
    if (granted->token.value <= granted_)
      violation_ = "token " + std::to_string(granted->token.value) + " after " + std::to_string(granted_);
    granted_ = std::max(granted_, granted->token.value);
    return;
  }
  const auto* denied = std::get_if<Denied>(&reply.answer);
  call(who, Verb::await_change, {}, denied && denied->holder ? Sight(*denied->holder) : Sight(Vacant{}));
}

void World::carry(std::uint8_t who, const effect::Open& open) {
  edit(who).handle = open.handle;
  edit(who).evicted_joining = false;
  join(who);
}

void World::carry(std::uint8_t who, const effect::Drop& drop) {
  auto& m = edit(who);
  m.handle = m.reading = 0;
  for (auto& j : group_)
    if (j.handle == drop.handle && j.who == who) {
      j.ghost = true;
      for (auto& s : sent_)
        if (s.who == who && s.handle == drop.handle && !s.late) {
          s.late = !s.handled;
          s.joined = j.id;
        }
    }
  std::erase_if(sent_, [&](const Sent& s) { return s.who == who && s.handle == drop.handle && !s.late; });
}

void World::carry(std::uint8_t who, const effect::SendCommit& send) {
  Sent s;
  s.handle = members_[who]->handle;
  s.id = send.id;
  s.who = who;
  s.partition = send.partition;
  s.commit = send.commit;
  sent_.push_back(std::move(s));
}

void World::pass_time() {
  --budget_.ticks;
  now_ += budget_.tick;
  for (std::uint8_t who = 0; who < candidates; ++who) {
    for (auto alarm = members_[who]->neli.alarm(); alarm < now_; alarm = members_[who]->neli.alarm())
      give(who, fact::Elapsed{}, alarm);
    give(who, fact::Elapsed{});
  }
}

// ---- the coordinator ----

void World::rebalance() {
  if (std::exchange(rebalancing_, true)) return;
  for (auto& j : group_) j.ready = j.told = false;
}

void World::join(std::uint8_t who) {
  rebalance();
  if (auto* in = joined(who)) {
    in->ready = true;
    return;
  }
  Joined j;
  j.id = ++joinings_;
  j.handle = members_[who]->handle;
  j.who = who;
  j.ready = true;
  group_.push_back(j);
}

void World::remove(std::uint64_t joined_id) {
  std::erase_if(group_, [&](const Joined& j) { return j.id == joined_id; });
  rebalance();
}

void World::complete(std::uint8_t owner) {
  rebalancing_ = false;
  ++generation_;
  std::erase_if(sent_, [](const Sent& s) { return s.late; });  // of a generation of before
  for (auto& j : group_) {
    j.ready = j.told = false;
    j.counts = true;
  }
  const auto told = group_;
  for (const auto& j : told) give(j.who, fact::Assigned{j.handle, j.who == owner, generation_, std::to_string(j.id)});
}

void World::revoke(std::uint8_t who) {
  joined(who)->told = true;
  if (between_ == Between::gives_up_when_revoked)
    for (std::size_t i = 0; i < sent_.size(); ++i)
      if (sent_[i].who == who && !sent_[i].late && !sent_[i].handled && sent_[i].partition == 0)
        give(who, fact::Committed{sent_[i].id, Outcome::unknown_topic, {Fault::timed_out, ""}});
  give(who, fact::Revoked{members_[who]->handle, false});
}

void World::handle(Sent& sent) {
  const auto in = [&](const Joined& j) {
    return sent.late ? j.id == sent.joined : j.who == sent.who && j.handle == sent.handle && !j.ghost;
  };
  bool member = false;
  for (const auto& j : group_) member = member || (in(j) && j.counts);
  sent.handled = true;
  sent.outcome = member ? Outcome::accepted : Outcome::fenced;
  if (member) records_[static_cast<std::size_t>(sent.partition)] = sent.commit;
}

void World::tell(const Sent& sent, Outcome outcome) {
  if (between_ == Between::takes_unknown_for_refused && outcome == Outcome::failed && sent.partition == 0)
    outcome = Outcome::unknown_topic;
  const auto fault = outcome == Outcome::fenced ? Fault::fenced : Fault::timed_out;
  const bool again = sent.again && between_ != Between::takes_second_for_first;
  give(sent.who, fact::Committed{sent.id, outcome, outcome == Outcome::accepted ? Error{} : Error{fault, ""}, again});
}

void World::answer(std::uint8_t who) {
  for (std::size_t i = 0; i < sent_.size(); ++i)
    if (sent_[i].who == who && !sent_[i].late && sent_[i].handled) {
      const auto s = sent_[i];
      sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(i));
      return tell(s, s.outcome);
    }
}

void World::cut(std::uint8_t who) {
  --budget_.cuts;
  std::vector<Sent> gone;
  const auto* in = joined(who);
  for (auto& s : sent_)
    if (s.who == who && !s.late) {
      gone.push_back(s);
      s.late = !s.handled && in;
      s.joined = in ? in->id : 0;
    }
  std::erase_if(sent_, [&](const Sent& s) { return s.who == who && !s.late; });
  for (const auto& s : gone) tell(s, Outcome::failed);
}

void World::send_again(std::uint8_t who) {
  --budget_.cuts;
  const auto* in = joined(who);
  std::vector<Sent> again;
  for (auto& s : sent_)
    if (s.who == who && !s.late) {
      again.push_back(s);
      again.back().again = true;
      again.back().handled = false;
      s.late = true;
      s.joined = in->id;
    }
  std::erase_if(sent_, [&](const Sent& s) { return s.who == who && s.late && s.handled; });
  sent_.insert(sent_.end(), again.begin(), again.end());
}

/// A late commit of a member that has left is refused for ever, because its member id does not come again.
void World::forget_what_is_refused() {
  std::erase_if(sent_, [&](const Sent& s) {
    if (!s.late) return false;
    for (const auto& j : group_)
      if (j.id == s.joined) return false;
    return true;
  });
}

std::uint64_t World::digest() {
  Digest d;
  for (auto& m : members_) {
    if (!m->digested) {
      Digest of_member;
      NeliState(m->neli, now_).digest(of_member);
      of_member.add_flags(
          {m->handle != 0, m->reading != 0, m->observing != 0, m->calling.has_value(), m->evicted_joining});
      m->digested = of_member.value();
    }
    d.add(m->digested);
  }
  const auto nonce = [&](const std::string& text) {
    std::uint64_t whose = 0;
    for (const auto& m : members_) whose = whose << 1 | std::uint64_t{NeliState(m->neli, now_).nonce() == text};
    return whose;
  };
  for (const auto& j : group_) {
    d.add(j.who);
    d.add_flags({j.ghost, j.ready, j.told, j.counts, j.handle == members_[j.who]->handle,
                 NeliState(members_[j.who]->neli, now_).member() == std::to_string(j.id)});
  }
  d.add(static_cast<std::uint64_t>(std::min(generation_, 2)));
  d.add(rebalancing_);
  d.add(records_[1] ? 1 + nonce(records_[1]->metadata) : 0);
  for (const auto& s : sent_) {
    const bool awaited = NeliState(members_[s.who]->neli, now_).outstanding() == s.id;
    d.add(s.who | static_cast<std::uint64_t>(s.outcome) << 4 | static_cast<std::uint64_t>(s.partition) << 7);
    d.add_flags({s.late, s.handled, s.again, awaited});
    if (s.partition == 1) d.add(nonce(s.commit.metadata));
  }
  digest_records(d);
  d.add(granted_);
  d.add(budget_.ticks | static_cast<std::uint64_t>(budget_.cuts) << 8 |
        static_cast<std::uint64_t>(budget_.evictions) << 16 | static_cast<std::uint64_t>(budget_.releases) << 24 |
        static_cast<std::uint64_t>(budget_.sightings) << 32 | static_cast<std::uint64_t>(budget_.slow) << 40 |
        static_cast<std::uint64_t>(budget_.foreign) << 48);
  return d.value();
}

/// Sequence numbers count by their order only.
void World::digest_records(Digest& d) const {
  std::vector<std::optional<Commit>> all{records_[0]};
  for (const auto& m : members_) all.push_back(NeliState(m->neli, now_).seen());
  for (const auto& s : sent_)
    if (s.partition == 0) all.emplace_back(s.commit);
  std::vector<std::optional<Record>> records;
  for (const auto& commit : all) records.push_back(commit ? decode(commit->metadata) : std::nullopt);
  for (std::size_t i = 0; i < all.size(); ++i) {
    d.add(all[i].has_value());
    if (!all[i]) continue;
    d.add(static_cast<std::uint64_t>(all[i]->offset));
    d.add(records[i].has_value());
    if (!records[i]) continue;  // a foreign one
    std::uint64_t before = 0;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (k != i && records[k] && records[k]->who.incarnation == records[i]->who.incarnation &&
          records[k]->seq != records[i]->seq)
        before |= std::uint64_t{records[k]->seq < records[i]->seq ? 2U : 1U} << 2 * k;
    d.add(records[i]->released);
    d.add(records[i]->who.incarnation);
    d.add(before);
  }
}

// ---- breadth first ----

struct Explored {
  std::size_t states{}, led{};
  std::size_t depth{};
  std::uint64_t tokens{};  ///< The most tenures one after another.
  std::string violation;   ///< With the steps that lead there.
};

class Exploration {
 public:
  Explored run(const World& from, std::size_t depth) {
    std::vector<Found> layer, next;
    layer.push_back({from, 0});
    nodes_.push_back({});
    seen_.insert(layer[0].world.digest());
    for (out_.depth = 0; out_.depth < depth && !layer.empty(); ++out_.depth) {
      next.clear();
      for (const auto& found : layer)
        if (!expand(found, next)) return finish();
      layer.swap(next);
    }
    return finish();
  }

 private:
  struct Node {
    std::uint32_t parent{};
    Step step;
  };
  struct Found {
    World world;
    std::uint32_t node{};
  };

  bool expand(const Found& found, std::vector<Found>& next) {
    found.world.steps(steps_);
    for (const auto step : steps_) {
      auto world = found.world;
      world.take(step);
      if (!seen_.insert(world.digest()).second) continue;
      nodes_.push_back({found.node, step});
      out_.led += world.leaders() > 0;
      out_.tokens = std::max(out_.tokens, world.granted());
      if (!world.violation().empty()) {
        out_.violation = world.violation() + ":" + way_to(static_cast<std::uint32_t>(nodes_.size() - 1));
        return false;
      }
      next.push_back({std::move(world), static_cast<std::uint32_t>(nodes_.size() - 1)});
    }
    return true;
  }
  std::string way_to(std::uint32_t node) const {
    std::string out;
    for (; node; node = nodes_[node].parent) {
      const auto step = nodes_[node].step;
      out = " " + std::string(names[step.kind]) +
            (step.kind == Step::tick ? "" : std::string("(") + static_cast<char>('a' + step.who) + ")") + out;
    }
    return out;
  }
  Explored finish() {
    out_.states = nodes_.size();
    return out_;
  }

  std::vector<Node> nodes_;
  std::unordered_set<std::uint64_t> seen_;
  std::vector<Step> steps_;
  Explored out_;
};

/// REQUIRES: each step may happen.
World after(World world, const std::vector<Step>& steps) {
  std::vector<Step> possible;
  for (const auto step : steps) {
    world.steps(possible);
    bool found = false;
    for (const auto p : possible) found = found || (p.kind == step.kind && p.who == step.who);
    EXPECT_TRUE(found) << names[step.kind] << " of " << int{step.who};
    if (!found) break;
    world.take(step);
  }
  return world;
}

std::vector<Step> joins_as_owner(std::uint8_t who) {
  return {{Step::acquire, who}, {Step::complete, who}, {Step::serve, who}, {Step::serve, who}};
}

/// The first leads; the second follows.
World one_leads(Between between, Budget budget) {
  auto world = after(World(between, budget), joins_as_owner(0));
  return after(std::move(world),
               {{Step::acquire, 1}, {Step::revoke, 0}, {Step::complete, 0}, {Step::renew, 0}, {Step::serve, 0}});
}

Explored explore(const char* from, const World& world, std::size_t depth) {
  const auto e = Exploration().run(world, depth);
  std::printf("from %s: %zu states, %zu with a leader, %zu steps deep, up to token %llu%s\n", from, e.states, e.led,
              e.depth, static_cast<unsigned long long>(e.tokens),
              e.violation.empty() ? "" : (". " + e.violation).c_str());
  return e;
}

/// `most`: the largest number of tenures, one after another, in any order.
void expect_none(const Explored& e, std::size_t states, std::uint64_t most) {
  EXPECT_EQ(e.violation, "");
  EXPECT_GE(e.states, states) << "it has not explored what it should";
  EXPECT_GE(e.led, states / 40);
  EXPECT_GE(e.tokens, most);
}

constexpr Budget a_cut_and_an_eviction{.ticks = 3, .cuts = 1, .evictions = 1, .releases = 0, .sightings = 0, .slow = 0};
/// Half a lease at a time: somebody may have seen a commit long before a newer one.
constexpr Budget a_cut_and_half_leases{
    .ticks = 3, .cuts = 1, .evictions = 0, .releases = 0, .sightings = 0, .slow = 0, .tick = patience};
constexpr Budget an_eviction{.ticks = 3, .cuts = 0, .evictions = 1, .releases = 0, .sightings = 0, .slow = 0};
constexpr Budget a_release_and_an_eviction{
    .ticks = 2, .cuts = 0, .evictions = 1, .releases = 1, .sightings = 0, .slow = 0};
constexpr Budget a_release_and_a_cut{.ticks = 2, .cuts = 1, .evictions = 0, .releases = 1, .sightings = 0, .slow = 0};

TEST(NeliExplore, FromNobody) {
  expect_none(explore("nobody", World(Between::faithful, a_cut_and_an_eviction), 13), 140'000, 3);
}

Explored explore_from_a_leader(const char* what, Budget budget, std::size_t depth) {
  return explore(what, one_leads(Between::faithful, budget), depth);
}

TEST(NeliExplore, FromALeader) {
  expect_none(explore_from_a_leader("a leader, a cut and an eviction", a_cut_and_an_eviction, 13), 20'000, 3);
  expect_none(explore_from_a_leader("a leader, a release and a cut", a_release_and_a_cut, 18), 26'000, 4);
  expect_none(explore_from_a_leader("a leader, one of each", {}, 9), 30'000, 2);
}

TEST(NeliExploreLong, FromALeader) {
  expect_none(explore_from_a_leader("a leader, a cut and an eviction", a_cut_and_an_eviction, 15), 60'000, 4);
  expect_none(explore_from_a_leader("a leader, an eviction", an_eviction, 20), 43'000, 4);
  expect_none(explore_from_a_leader("a leader, a release and an eviction", a_release_and_an_eviction, 20), 70'000, 4);
  expect_none(explore_from_a_leader("a leader, one of each", {}, 10), 80'000, 3);
}

TEST(NeliExplore, FindsATokenTwiceIfTheHandleClaimsAgainAfterAnUnknownOutcome) {
  const World broken(Between::takes_unknown_for_refused, a_cut_and_half_leases);
  EXPECT_EQ(explore("nobody, rule 10 broken", broken, 18).violation.substr(0, 15), "token 2 after 2");
}

Explored explore_half_leases(std::size_t depth) {
  return explore("nobody, half a lease at a time", World(Between::faithful, a_cut_and_half_leases), depth);
}

TEST(NeliExplore, ACommitThatWasSentTwiceMakesNoSecondLeader) { expect_none(explore_half_leases(16), 70'000, 3); }

TEST(NeliExploreLong, ACommitThatWasSentTwiceMakesNoSecondLeader) { expect_none(explore_half_leases(19), 200'000, 4); }

Explored explore_evictions_too(std::size_t depth) {
  auto budget = a_cut_and_half_leases;
  budget.evictions = budget.releases = budget.sightings = 1;
  return explore("nobody, also evicted", World(Between::faithful, budget), depth);
}

TEST(NeliExplore, ACommitThatWasSentTwiceByOneThatIsEvictedMakesNoSecondLeader) {
  expect_none(explore_evictions_too(11), 200'000, 2);
}

TEST(NeliExploreLong, ACommitThatWasSentTwiceByOneThatIsEvictedMakesNoSecondLeader) {
  expect_none(explore_evictions_too(13), 1'000'000, 3);
}

/// Half a lease at a time. The same foreign commit may stand before and after a renewal that nobody else saw.
constexpr Budget two_foreign_commits{
    .ticks = 4, .cuts = 0, .evictions = 1, .releases = 0, .sightings = 0, .slow = 0, .foreign = 2, .tick = patience};

Explored explore_foreign_commits(std::size_t depth) {
  const auto led = after(World(Between::faithful, two_foreign_commits), joins_as_owner(0));
  return explore("a leader, foreign commits", led, depth);
}

TEST(NeliExplore, TheSameForeignCommitMadeTwiceMakesNoSecondLeader) {
  expect_none(explore_foreign_commits(10), 30'000, 2);
}

TEST(NeliExploreLong, TheSameForeignCommitMadeTwiceMakesNoSecondLeader) {
  expect_none(explore_foreign_commits(13), 100'000, 2);
}

TEST(NeliExplore, FindsTwoLeadersIfACommitThatWasSentTwiceDoesNotCostTheHandle) {
  const World broken(Between::takes_second_for_first, a_cut_and_half_leases);
  EXPECT_EQ(explore("nobody, rule 23 broken", broken, 15).violation.substr(0, 8), "two lead");
}

TEST(NeliExplore, FindsTwoLeadersIfTheUnassignDoesNotWaitForTheAnswer) {
  EXPECT_NE(explore("a leader, rule 13 broken", one_leads(Between::gives_up_when_revoked, an_eviction), 18).violation,
            "");
}

}  // namespace
}  // namespace tenure::kafka
