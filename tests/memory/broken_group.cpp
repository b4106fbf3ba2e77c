// SPDX-License-Identifier: Apache-2.0
// The contract suite of groups, over memory's groups behind a wrapper that breaks the one rule which the environment
// variable TENURE_BROKEN_RULE names. group_convicts_test.cpp runs it, and expects the suite to fail.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>

#include <tenure/memory.hpp>

#include "group_suite.hpp"

namespace tenure::contract {
namespace {

/// Forwards every call. A broken store overrides what it breaks.
class Forwarding : public GroupStore {
 public:
  explicit Forwarding(std::shared_ptr<GroupStore> real) : real_(std::move(real)) {}

  std::string group() const override { return real_->group(); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override { return real_->look(cursor, limit); }
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return real_->open(id, session, limit);
  }
  Result<Committed> commit(const Commit& commit, const Limit& limit) override { return real_->commit(commit, limit); }
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return real_->end(id, beats, new_beat, limit);
  }
  Result<int> sweep(const Limit& limit) override { return real_->sweep(limit); }
  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit) override {
    return real_->retire(leads, limit);
  }
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    return real_->request_step_down(election, request, limit);
  }
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    return real_->await_change(cursor, limit);
  }
  std::optional<Error> accepts(const Timing& timing) override { return real_->accepts(timing); }

 protected:
  Look standing(const Limit& limit) const {
    auto look = real_->look({}, limit);
    return look ? *std::move(look) : Look{};
  }
  void add_beat_of(SessionId id, std::vector<std::uint64_t>& beats, const Limit& limit) const {
    const auto sessions = standing(limit).sessions;
    if (const auto it = sessions.find(id); it != sessions.end()) beats.push_back(it->second.record.beat);
  }

  const std::shared_ptr<GroupStore> real_;
};

/// Changes what is asked of commit().
template <class Change>
class BreaksCommits final : public Forwarding {
 public:
  BreaksCommits(std::shared_ptr<GroupStore> real, Change change) : Forwarding(std::move(real)), change_(change) {}
  Result<Committed> commit(const Commit& asked, const Limit& limit) override {
    auto commit = asked;
    change_(commit, standing(limit));
    return real_->commit(commit, limit);
  }

 private:
  Change change_;
};

/// Changes every look, those of answers too.
template <class Change>
class BreaksLooks final : public Forwarding {
 public:
  BreaksLooks(std::shared_ptr<GroupStore> real, Change change) : Forwarding(std::move(real)), change_(change) {}
  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    auto look = real_->look(cursor, limit);
    if (look) change_(*look);
    return look;
  }
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return changed(real_->open(id, session, limit));
  }
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    return changed(real_->commit(commit, limit));
  }

 private:
  Result<Committed> changed(Result<Committed> done) {
    if (done) change_(done->look);
    return done;
  }

  Change change_;
};

class TellsARefusalAsGranted final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    auto done = real_->commit(commit, limit);
    if (done) done->granted = true;
    return done;
  }
};

class OpensAnIdTwice final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    auto done = real_->open(id, session, limit);
    if (done) done->granted = true;
    return done;
  }
};

class RoundsTermsDown final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<Committed> open(SessionId id, const Session& asked, const Limit& limit) override {
    auto session = asked;
    session.record.term = std::chrono::floor<milliseconds>(session.record.term);
    return real_->open(id, session, limit);
  }
};

class EndsByAnyBeat final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& asked, std::uint64_t new_beat,
                   const Limit& limit) override {
    auto beats = asked;
    add_beat_of(id, beats, limit);
    return real_->end(id, beats, new_beat, limit);
  }
};

class SaysThatItEnded final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    const auto ended = real_->end(id, beats, new_beat, limit);
    return ended ? Result<bool>(true) : ended;
  }
};

class SweepsNothing final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<int> sweep(const Limit&) override { return 0; }
};

class SweepsWhatLeadsName final : public Forwarding {
 public:
  SweepsWhatLeadsName(std::shared_ptr<GroupStore> real, memory::Hub hub)
      : Forwarding(std::move(real)), hub_(std::move(hub)) {}
  Result<int> sweep(const Limit& limit) override {
    int swept = 0;
    for (const auto& [id, session] : standing(limit).sessions) {
      if (!session.record.released) continue;
      hub_.lose_session(group(), id);
      ++swept;
    }
    return swept;
  }

 private:
  memory::Hub hub_;
};

/// Requests stand beside the election, and not beside a tenure of it.
class KeepsStaleRequests final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    auto look = real_->look(cursor, limit);
    if (!look) return look;
    const std::lock_guard lock(kept_.mutex);
    for (auto& [election, lead] : look->leads)
      if (const auto it = kept_.requests.find({group(), election}); it != kept_.requests.end())
        lead.step_down = it->second;
    return look;
  }
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    auto error = real_->request_step_down(election, request, limit);
    const std::lock_guard lock(kept_.mutex);
    if (!error) kept_.requests.insert_or_assign({group(), election}, request);
    return error;
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, StepDown> requests;
  };
  static inline Kept kept_;
};

class AsksNobodyToStepDown final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    static_cast<void>(real_->request_step_down(election, request, limit));
    return std::nullopt;
  }
};

/// Asks with more time than it was given.
class IgnoresLimits final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<Look> look(const std::string& cursor, const Limit&) override { return real_->look(cursor, long_after()); }
  static Limit long_after() { return Player::within(std::chrono::seconds(10)); }
};

class RetiresAfterItsLimit final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit&) override {
    return real_->retire(leads, IgnoresLimits::long_after());
  }
};

/// Tells an error, and carries it out all the same.
class WritesWhatComesLate final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    auto done = real_->commit(commit, IgnoresLimits::long_after());
    return limit.passed() ? Result<Committed>(Error{Fault::timed_out, "late"}) : done;
  }
};

class RetiresNothing final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit&) override {
    if (auto error = refused_retirement(leads)) return *std::move(error);
    return std::set<std::string>{};
  }
};

template <template <class> class Breaks, class Change>
std::shared_ptr<GroupStore> breaking(std::shared_ptr<GroupStore> real, Change change) {
  return std::make_shared<Breaks<Change>>(std::move(real), change);
}

class RetiresAnyToken final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  Result<std::set<std::string>> retire(const std::map<std::string, Token>& asked, const Limit& limit) override {
    auto leads = asked;
    const auto stands = standing(limit).leads;
    for (auto& [election, token] : leads)
      if (const auto it = stands.find(election); it != stands.end()) token = it->second.token;
    return Forwarding::retire(leads, limit);
  }
};

std::shared_ptr<GroupStore> with_broken_commits(const std::string& rule, std::shared_ptr<GroupStore> real) {
  if (rule == "any_beat_renews")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look& stands) {
      if (const auto it = stands.sessions.find(c.session); it != stands.sessions.end())
        c.beats.push_back(it->second.record.beat);
    });
  if (rule == "any_marker_will_do")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look& stands) { c.marker = stands.marker; });
  if (rule == "any_token_claims")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look& stands) {
      for (auto& claim : c.claims)
        if (const auto it = stands.leads.find(claim.election); it != stands.leads.end())
          claim.expected = it->second.token;
    });
  if (rule == "nobody_need_say_who_ended")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look& stands) {
      for (const auto& [id, session] : stands.sessions) c.ended.push_back(id);
    });
  if (rule == "a_token_is_rounded")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look&) {
      c.at_least.value = static_cast<std::uint64_t>(static_cast<double>(c.at_least.value));
    });
  if (rule == "a_token_need_not_be_so_great")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look&) { c.at_least = {}; });
  if (rule == "any_token_releases")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look& stands) {
      for (auto& release : c.releases)
        if (const auto it = stands.leads.find(release.election); it != stands.leads.end())
          release.token = it->second.token;
    });
  if (rule == "an_heir_is_forgotten")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look&) {
      for (auto& release : c.releases) release.heir.reset();
    });
  if (rule == "a_retired_token_is_expected_in_vain")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look& stands) {
      std::erase_if(c.claims, [&](const Claim& one) { return one.expected && !stands.leads.contains(one.election); });
    });
  if (rule == "too_many_changes_are_cut")
    return breaking<BreaksCommits>(real, [](Commit& c, const Look&) {
      while (c.claims.size() + c.releases.size() > max_changes) c.claims.pop_back();
    });
  return nullptr;
}

std::shared_ptr<GroupStore> with_broken_looks(const std::string& rule, std::shared_ptr<GroupStore> real) {
  if (rule == "a_change_is_not_told")
    return breaking<BreaksLooks>(real, [](Look& look) {
      if (!look.whole && !look.leads.empty()) look.leads.erase(look.leads.begin());
    });
  if (rule == "no_look_is_whole") return breaking<BreaksLooks>(real, [](Look& look) { look.whole = false; });
  if (rule == "ended_sessions_are_hidden")
    return breaking<BreaksLooks>(real, [](Look& look) {
      std::erase_if(look.sessions, [](const auto& entry) { return entry.second.record.released; });
    });
  if (rule == "the_retired_token_is_hidden") return breaking<BreaksLooks>(real, [](Look& look) { look.retired = {}; });
  if (rule == "a_session_was_always_written_now")
    return breaking<BreaksLooks>(real, [](Look& look) {
      for (auto& [id, session] : look.sessions) session.record.written_ms = look.now_ms;
    });
  if (rule == "a_release_is_hidden")
    return breaking<BreaksLooks>(real, [](Look& look) {
      for (auto& [election, lead] : look.leads) lead.released = false;
    });
  return nullptr;
}

std::shared_ptr<GroupStore> broken(const std::string& rule, const memory::Hub& hub, const std::string& group) {
  auto real = hub.group(group);
  if (rule.empty()) return real;
  if (auto store = with_broken_commits(rule, real)) return store;
  if (auto store = with_broken_looks(rule, real)) return store;
  if (rule == "a_refusal_is_told_as_granted") return std::make_shared<TellsARefusalAsGranted>(real);
  if (rule == "an_id_is_opened_twice") return std::make_shared<OpensAnIdTwice>(real);
  if (rule == "a_term_is_rounded_down") return std::make_shared<RoundsTermsDown>(real);
  if (rule == "any_beat_ends") return std::make_shared<EndsByAnyBeat>(real);
  if (rule == "what_lives_is_said_to_have_ended") return std::make_shared<SaysThatItEnded>(real);
  if (rule == "nothing_is_swept") return std::make_shared<SweepsNothing>(real);
  if (rule == "what_leads_name_is_swept") return std::make_shared<SweepsWhatLeadsName>(real, hub);
  if (rule == "any_token_is_retired") return std::make_shared<RetiresAnyToken>(real);
  if (rule == "a_request_outlives_its_tenure") return std::make_shared<KeepsStaleRequests>(real);
  if (rule == "nobody_need_have_led") return std::make_shared<AsksNobodyToStepDown>(real);
  if (rule == "a_look_has_no_limit") return std::make_shared<IgnoresLimits>(real);
  if (rule == "a_retirement_has_no_limit") return std::make_shared<RetiresAfterItsLimit>(real);
  if (rule == "what_comes_late_is_written") return std::make_shared<WritesWhatComesLate>(real);
  if (rule == "nothing_is_retired") return std::make_shared<RetiresNothing>(real);
  std::cerr << "no such rule: " << rule << "\n";
  std::exit(2);
}

std::string rule_of_this_run() {
  const char* const rule = std::getenv("TENURE_BROKEN_RULE");  // NOLINT(concurrency-mt-unsafe): before any thread
  return rule ? rule : "";
}

class BrokenGroup final : public GroupUnderTest {
 public:
  std::shared_ptr<GroupStore> connect(const std::string& group) override {
    return broken(rule_of_this_run(), hub_, group);
  }
  bool can_lose() const override { return true; }
  int rounds() const override { return 5; }
  bool lose_everything() override {
    hub_.flush();
    return true;
  }

 private:
  memory::Hub hub_{{.absence_certain = false}};
};

const auto subject = testing::Values(GroupSubject{"broken", [] { return std::make_unique<BrokenGroup>(); }});

INSTANTIATE_TEST_SUITE_P(broken, GroupContract, subject, name_of_group);
INSTANTIATE_TEST_SUITE_P(broken, GuardOfACommit, subject, name_of_group);

}  // namespace
}  // namespace tenure::contract
