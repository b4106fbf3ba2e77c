// SPDX-License-Identifier: Apache-2.0
// Goal: of those who do something at once one is first, and nobody hears an error or misses a change. Method: several
// threads, each with a connection of its own; afterwards their answers must fit together.
#include <atomic>
#include <barrier>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include <tenure/contract/group_history.hpp>
#include <tenure/contract/group_suite.hpp>

namespace tenure::contract {
namespace {

/// Runs it in one thread for each of them, all at once.
template <class Do>
void at_once(std::size_t threads, Do&& work) {
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::jthread> all;
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      together.arrive_and_wait();
      work(i);
    });
}

}  // namespace

TEST_P(GroupContract, OfThoseWhoClaimAtOnceOneLeads) {
  std::vector<Member> members;
  for (const auto* name : {"a", "b", "c", "d"}) members.push_back(member(name));
  Names elections;
  for (int i = 0; i < 10; ++i) elections.push_back("election " + std::to_string(i));
  for (int round = 0; round < group_->rounds(); ++round) {
    std::vector<Committed> done(members.size());
    for (auto& m : members) m.look();
    at_once(members.size(), [&](std::size_t i) { done[i] = members[i].claim(elections); });
    const auto leads = standing().leads;
    Names all;
    for (std::size_t i = 0; i < members.size(); ++i) {
      EXPECT_TRUE(done[i].granted);
      std::copy(done[i].claimed.begin(), done[i].claimed.end(), std::back_inserter(all));
      for (const auto& election : done[i].claimed) {
        EXPECT_EQ(leads.at(election).session, members[i].id());
        EXPECT_EQ(leads.at(election).token, done[i].token);
      }
    }
    EXPECT_EQ(sorted(all), elections) << "each is claimed once";
    at_once(members.size(), [&](std::size_t i) {
      const auto& claimed = done[i].claimed;
      EXPECT_EQ(members[i].release(claimed).released.size(), claimed.size());
    });
  }
}

/// Those that stood before the end are found by whoever ended it, and no others come.
TEST_P(GroupContract, ACommitComesBeforeTheEndOfItsSessionOrNotAtAll) {
  auto killer = member("killer");
  for (int round = 0; round < group_->rounds(); ++round) {
    auto m = member("m");
    std::vector<std::uint64_t> beats{m.beat()};
    for (int i = 0; i < 8; ++i) beats.push_back(draw_beat());
    const auto first = "round " + std::to_string(round) + ", ";
    Names led;
    Leads found;
    at_once(2, [&](std::size_t who) {
      if (who == 0) {
        for (std::size_t i = 1; i < beats.size(); ++i) {
          auto commit = m.renewal();
          commit.next = m.session(beats[i]);
          commit.claims = {{first + std::to_string(i), std::nullopt}};
          const auto done = m.commit(commit);
          std::copy(done.claimed.begin(), done.claimed.end(), std::back_inserter(led));
          if (!done.granted) return;
        }
      } else {
        for (int i = 0; i < round % 8; ++i) killer.look();
        EXPECT_TRUE(killer.end(m.id(), beats));
        killer.look();
        for (const auto& [election, lead] : killer.seen().leads())
          if (lead.session == m.id()) found.emplace(election, lead);
      }
    });
    EXPECT_FALSE(m.renew());
    Names names;
    for (const auto& [election, lead] : found) names.push_back(election);
    EXPECT_EQ(names, sorted(led));
    EXPECT_EQ(sorted(killer.claim(led, {m.id()}).claimed), sorted(led));
  }
}

TEST_P(GroupContract, TwoMayEndEachOther) {
  for (int round = 0; round < group_->rounds(); ++round) {
    std::vector<Member> two;
    for (const auto* name : {"a", "b"}) two.push_back(member(name));
    std::atomic<int> ended{0};
    at_once(2, [&](std::size_t i) { ended += two[i].end(two[1 - i]); });
    EXPECT_EQ(ended, 2);
    EXPECT_FALSE(two[0].renew());
    EXPECT_FALSE(two[1].renew());
  }
}

TEST_P(GroupContract, OfTwoEndsAndARenewalAtOnceTheyAgree) {
  for (int round = 0; round < group_->rounds(); ++round) {
    auto m = member("m");
    auto one = stranger("one"), other = stranger("other");
    const std::vector<std::uint64_t> beat{m.beat()};
    const auto id = m.id();
    bool renewed{}, ended_by_one{}, ended_by_other{};
    at_once(3, [&](std::size_t i) {
      if (i == 0) renewed = m.renew();
      if (i == 1) ended_by_one = one.end(id, beat);
      if (i == 2) ended_by_other = other.end(id, beat);
    });
    EXPECT_EQ(ended_by_one, !renewed);
    EXPECT_EQ(ended_by_other, !renewed);
    EXPECT_EQ(m.renew(), renewed);
  }
}

/// Every name is claimed once and released once, so a change that is missed is not made good by a later one.
TEST_P(GroupContract, WhoFollowsByACursorMissesNothing) {
  constexpr std::size_t writers = 2;
  std::vector<Member> members;
  for (const auto* name : {"w0", "w1", "follower"}) members.push_back(member(name));
  std::atomic<std::size_t> writing{writers};
  at_once(members.size(), [&](std::size_t i) {
    auto& m = members[i];
    if (i >= writers) {
      while (writing > 0) m.look();
      return;
    }
    Names last;
    for (int n = 0; n < 2 * group_->rounds(); ++n) {
      auto commit = m.renewal();
      for (const auto& election : last)
        commit.releases.push_back({election, m.seen().token(election).value_or(Token())});
      last.clear();
      for (const auto* part : {"a", "b"}) {
        last.push_back("by " + std::to_string(i) + " " + std::to_string(n) + part);
        commit.claims.push_back({last.back(), std::nullopt});
      }
      const auto done = m.commit(commit);
      EXPECT_EQ(sorted(done.claimed), last);
      EXPECT_EQ(done.released.size(), commit.releases.size());
    }
    --writing;
  });
  for (auto& m : members) m.look();
  const auto all = standing();
  EXPECT_EQ(all.leads.size(), writers * 2 * 2 * static_cast<std::size_t>(group_->rounds()));
  for (auto& m : members) {
    EXPECT_EQ(m.seen().sessions(), all.sessions);
    ASSERT_EQ(m.seen().leads().size(), all.leads.size());
    EXPECT_TRUE(m.seen().leads() == all.leads);
  }
}

// ---- random histories ----

namespace {

/// Does at random what a process does, and much that none would do.
class Wanderer {
 public:
  Wanderer(Member member, std::uint32_t seed, std::atomic<std::uint64_t>& counter)
      : member_(std::move(member)), random_(seed), counter_(counter) {}

  void step() {
    if (over_) return open();
    const auto verb = below(100);
    if (verb < 65) return commit();
    if (verb < 75) return end_another();
    if (verb < 78) return end(member_.id(), {member_.beat()});
    if (verb < 86) return sweep();
    if (verb < 90) return ask_to_step_down();
    member_.look(below(4) == 0 ? "" : member_.seen().cursor());
    watch();
  }

  Member& member() { return member_; }
  const std::vector<Event>& events() const { return events_; }

  static constexpr std::size_t elections = 6;

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  std::optional<SessionId> any_session() {
    const auto& all = member_.seen().sessions();
    if (all.empty()) return std::nullopt;
    return std::next(all.begin(), static_cast<std::ptrdiff_t>(below(all.size())))->first;
  }

  void open() {
    Event event{.verb = Event::Verb::open, .asked = ++counter_};
    event.granted = member_.open();
    event.answered = ++counter_;
    event.session = member_.id();
    event.commit.next.record.beat = member_.beat();
    if (event.granted) events_.push_back(event);
    over_ = !event.granted;
    watch();
  }

  void commit() {
    Event event{.verb = Event::Verb::commit, .asked = {}, .answered = {}, .session = member_.id()};
    auto& commit = event.commit = member_.renewal();
    for (std::size_t i = 0; i < elections; ++i) change("election " + std::to_string(i), commit);
    for (const auto& [id, session] : member_.seen().sessions())
      if (session.record.released || one_in(5)) commit.ended.push_back(id);  // of the live ones it is not true
    commit.at_least = Token{member_.seen().highest().value + 1};
    if (one_in(15)) commit.beats = {draw_beat()};
    if (one_in(3)) commit.beats.push_back(draw_beat());
    event.asked = ++counter_;
    const auto done = member_.commit(commit);
    event.answered = ++counter_;
    event.granted = done.granted;
    event.token = done.token;
    event.claimed = done.claimed;
    event.released = done.released;
    events_.push_back(event);
    watch();
  }

  void change(const std::string& election, Commit& commit) {
    const auto& leads = member_.seen().leads();
    const auto it = leads.find(election);
    if (it == leads.end() || one_in(12)) {
      if (one_in(3)) commit.claims.push_back({election, std::nullopt});
    } else if (it->second.session == member_.id() && !it->second.released && one_in(2)) {
      commit.releases.push_back({election, it->second.token, any_session()});
    } else if (one_in(2)) {
      commit.claims.push_back({election, Token{it->second.token.value - (one_in(10) ? 1 : 0)}});
    } else if (one_in(6)) {
      commit.releases.push_back({election, it->second.token, {}});
    }
  }

  void end_another() {
    const auto id = any_session();
    if (!id) return;
    const auto beat = member_.seen().sessions().at(*id).record.beat;
    end(*id, {one_in(4) ? beat + 1 : beat});
  }

  void end(SessionId id, const std::vector<std::uint64_t>& beats) {
    Event event{.verb = Event::Verb::end, .asked = ++counter_, .answered = {}, .session = id};
    event.commit.beats = beats;
    event.granted = member_.end(id, beats);
    event.answered = ++counter_;
    events_.push_back(event);
    if (id == member_.id()) over_ = event.granted;
  }

  void sweep() {
    Event event{.verb = Event::Verb::sweep, .asked = ++counter_, .answered = {}, .session = member_.id()};
    member_.sweep();
    event.answered = ++counter_;
    events_.push_back(event);
  }

  void ask_to_step_down() {
    const auto& leads = member_.seen().leads();
    if (leads.empty()) return;
    const auto& [election, lead] = *leads.begin();
    EXPECT_EQ(member_.store().request_step_down(election, {lead.token, "ops", "why"}, member_.limit()), std::nullopt);
  }

  /// What was seen never goes back.
  void watch() {
    for (const auto& [election, lead] : member_.seen().leads()) {
      EXPECT_GE(lead.token, highest_[election]);
      highest_[election] = lead.token;
    }
    const auto& sessions = member_.seen().sessions();
    for (const auto& [id, session] : sessions) {
      EXPECT_TRUE(session.record.released || !ended_.contains(id)) << "an end is final";
      if (session.record.released) ended_.insert(id);
    }
    const auto ours = sessions.find(member_.id());
    over_ = ours == sessions.end() || ours->second.record.released;
  }

  Member member_;
  std::mt19937 random_;
  std::atomic<std::uint64_t>& counter_;
  bool over_{true};
  std::vector<Event> events_;
  std::map<std::string, Token> highest_;
  std::set<SessionId> ended_;
};

struct Seen {
  std::map<SessionId, bool> sessions;  ///< All that were opened. True: it has ended.
  std::map<std::string, Lead> leads;   ///< The last ones.
};

Seen end_of(const std::vector<Event>& history) {
  Seen last;
  for (const auto& event : history) {
    if (event.verb == Event::Verb::open && event.granted) last.sessions.try_emplace(event.session, false);
    if (event.verb == Event::Verb::end && event.granted) last.sessions[event.session] = true;
    for (const auto& election : event.claimed)
      if (auto& lead = last.leads[election]; lead.token < event.token)
        lead = {.token = event.token, .session = event.session};
  }
  for (const auto& event : history)
    for (const auto& release : event.commit.releases)
      if (std::count(event.released.begin(), event.released.end(), release.election) != 0)
        if (auto& lead = last.leads[release.election]; lead.token == release.token)
          lead.released = true, lead.heir = release.heir;
  return last;
}

}  // namespace

TEST_P(GroupContract, ARandomHistoryIsARightOne) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto group = "history " + std::to_string(seed);
    std::atomic<std::uint64_t> counter{0};
    std::vector<Wanderer> wanderers;
    for (std::uint32_t i = 0; i < 4; ++i)
      wanderers.emplace_back(stranger("w" + std::to_string(i), group), 10 * seed + i, counter);
    at_once(wanderers.size(), [&](std::size_t i) {
      for (int n = 0; n < 2 * group_->rounds(); ++n) wanderers[i].step();
    });
    std::vector<Event> history;
    for (auto& w : wanderers) std::copy(w.events().begin(), w.events().end(), std::back_inserter(history));
    EXPECT_EQ(judge(history), std::vector<std::string>{});

    const auto all = standing(group);
    EXPECT_EQ(all.leads.size(), Wanderer::elections) << "every election was led";
    for (auto& w : wanderers) {
      w.member().look();
      EXPECT_EQ(w.member().seen().leads(), all.leads);
      EXPECT_EQ(w.member().seen().sessions(), all.sessions);
    }
    auto last = end_of(history);
    ASSERT_EQ(all.leads.size(), last.leads.size());
    for (auto [election, lead] : all.leads) {
      EXPECT_TRUE(lead.released || all.sessions.contains(lead.session)) << "a session was swept that a lead names";
      lead.step_down.reset();
      auto& told = last.leads.at(election);
      if (last.sessions.at(told.session)) lead.released = told.released = true;  // or a sweep may release it
      EXPECT_EQ(lead, told);
    }
    for (const auto& [id, ended] : last.sessions) {
      const auto it = all.sessions.find(id);
      EXPECT_TRUE(it != all.sessions.end() || ended) << "a live session was swept";
      EXPECT_TRUE(it == all.sessions.end() || it->second.record.released == ended);
    }
  }
}

}  // namespace tenure::contract
