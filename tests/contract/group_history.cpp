// SPDX-License-Identifier: Apache-2.0
// Judges a history of calls to a GroupStore.
#include <tenure/contract/group_history.hpp>

#include <algorithm>
#include <map>
#include <optional>

namespace tenure::contract {
namespace {

using Findings = std::vector<std::string>;

template <class Range, class Value>
bool has(const Range& range, const Value& value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

std::string text(SessionId id) { return "session " + std::to_string(id.value % 10'000); }

struct Grant {
  Token token;
  std::optional<Token> expected;
  const Event* event;
};

class Judge {
 public:
  explicit Judge(const std::vector<Event>& history) {
    for (const auto& event : history) sort_in(event);
    for (auto& [id, events] : of_session_)
      std::sort(events.begin(), events.end(), [](auto* a, auto* b) { return a->asked < b->asked; });
    for (auto& [election, grants] : grants_)
      std::sort(grants.begin(), grants.end(), [](auto& a, auto& b) { return a.token < b.token; });
  }

  Findings findings() {
    for (const auto& [election, grants] : grants_) judge_grants(election, grants);
    for (const auto& [lead, releases] : releases_) judge_releases(lead.first, lead.second, releases);
    for (const auto& [id, events] : of_session_) judge_session(id, events);
    return std::move(findings_);
  }

 private:
  using OneLead = std::pair<std::string, Token>;

  void sort_in(const Event& event) {
    if (event.verb == Event::Verb::sweep) return sweeps_.push_back(&event);
    if (event.verb == Event::Verb::end) {
      ends_[event.session].push_back(&event);
      return;
    }
    of_session_[event.session].push_back(&event);
    for (const auto& election : event.claimed) {
      const auto& claims = event.commit.claims;
      const auto claim =
          std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return c.election == election; });
      if (claim == claims.end())
        wrong(election, event.token, "was not asked for");
      else
        grants_[election].push_back({event.token, claim->expected, &event});
    }
    for (const auto& release : event.commit.releases)
      if (has(event.released, release.election)) releases_[{release.election, release.token}].push_back(&event);
  }

  void wrong(const std::string& election, Token token, const std::string& what) {
    findings_.push_back(election + ", token " + std::to_string(token.value) + ": " + what);
  }
  void wrong(SessionId id, const std::string& what) { findings_.push_back(text(id) + ": " + what); }

  // ---- leads ----

  void judge_grants(const std::string& election, const std::vector<Grant>& grants) {
    std::uint64_t latest_asked = 0;
    for (std::size_t i = 0; i < grants.size(); ++i) {
      const auto& grant = grants[i];
      const auto* before = i == 0 ? nullptr : &grants[i - 1];
      if (before && before->token == grant.token) wrong(election, grant.token, "given twice");
      if (grant.expected != (before ? std::optional(before->token) : std::nullopt))
        wrong(election, grant.token, "it did not expect the one before it, or that one is not before it");
      if (grant.event->answered < latest_asked) wrong(election, grant.token, "smaller than one that was given before");
      latest_asked = std::max(latest_asked, grant.event->asked);
      if (before && !allowed(election, *before, *grant.event))
        wrong(election, grant.token, "taken from a live session");
    }
  }

  bool allowed(const std::string& election, const Grant& before, const Event& by) const {
    const auto owner = before.event->session;
    if (by.session == owner) return true;
    if (const auto it = releases_.find({election, before.token}); it != releases_.end())
      for (const auto* release : it->second)
        if (release->asked < by.answered) return true;
    return (has(by.commit.ended, owner) || may_be_swept_before(by.answered)) &&
           may_have_ended_before(owner, by.answered);
  }

  void judge_releases(const std::string& election, Token token, const std::vector<const Event*>& releases) {
    if (releases.size() > 1) wrong(election, token, "released twice");
    const auto it = grants_.find(election);
    if (it == grants_.end()) return wrong(election, token, "released, and never given");
    const auto grant =
        std::find_if(it->second.begin(), it->second.end(), [&](const Grant& g) { return g.token == token; });
    if (grant == it->second.end()) return wrong(election, token, "released, and never given");
    const auto next = grant + 1;
    for (const auto* release : releases) {
      if (release->session != grant->event->session) wrong(election, token, "released by another session");
      if (release->answered < grant->event->asked) wrong(election, token, "released before it was given");
      if (next != it->second.end() && next->event->answered < release->asked)
        wrong(election, token, "released when another had it");
    }
  }

  // ---- sessions ----

  bool may_have_ended_before(SessionId id, std::uint64_t moment) const {
    const auto it = ends_.find(id);
    return it != ends_.end() && std::any_of(it->second.begin(), it->second.end(),
                                            [&](auto* end) { return end->granted && end->asked < moment; });
  }
  bool had_ended_before(SessionId id, std::uint64_t moment) const {
    const auto it = ends_.find(id);
    return it != ends_.end() && std::any_of(it->second.begin(), it->second.end(),
                                            [&](auto* end) { return end->granted && end->answered < moment; });
  }

  /// A sweep releases what ended sessions led, and removes them. Nobody can end what is absent.
  bool may_be_swept_before(std::uint64_t moment) const {
    return std::any_of(sweeps_.begin(), sweeps_.end(), [&](auto* sweep) { return sweep->asked < moment; });
  }

  /// Its own calls, one after the other.
  void judge_session(SessionId id, const std::vector<const Event*>& events) {
    struct Stood {
      std::uint64_t beat, from, until;
    };
    std::vector<Stood> stood;
    for (const auto* event : events) {
      const bool opens = event->verb == Event::Verb::open;
      if (opens != stood.empty()) {
        if (event->granted) wrong(id, opens ? "opened twice" : "granted a commit before it was opened");
        continue;
      }
      const bool right = opens || has(event->commit.beats, stood.back().beat);
      if (event->granted && had_ended_before(id, event->asked)) wrong(id, "went on after its end");
      if (event->granted && !right) wrong(id, "granted a commit by a beat that it had not");
      if (!event->granted && right && !may_have_ended_before(id, event->answered))
        wrong(id, "refused, and nobody had ended it");
      if (!event->granted) continue;
      if (!stood.empty()) stood.back().until = event->answered;
      stood.push_back({event->commit.next.record.beat, event->asked, UINT64_MAX});
    }
    judge_ends(id, [&](const Event& end) {
      return std::any_of(stood.begin(), stood.end(), [&](const Stood& s) {
        return has(end.commit.beats, s.beat) && s.from < end.answered && end.asked < s.until;
      });
    });
  }

  template <class Possible>
  void judge_ends(SessionId id, Possible possible) {
    auto first = UINT64_MAX;  // that can have been the one that took effect
    for (const auto* end : ends_[id])
      if (end->granted && possible(*end)) first = std::min(first, end->asked);
    for (const auto* end : ends_[id]) {
      if (end->granted && end->answered < first) wrong(id, "ended by a beat that it had not");
      if (!end->granted && had_ended_before(id, end->asked) && !may_be_swept_before(end->answered))
        wrong(id, "had ended, and an end was refused");
    }
  }

  std::map<std::string, std::vector<Grant>> grants_;
  std::map<OneLead, std::vector<const Event*>> releases_;
  std::map<SessionId, std::vector<const Event*>> of_session_, ends_;
  std::vector<const Event*> sweeps_;  ///< Each may have released what ended sessions led.
  Findings findings_;
};

}  // namespace

std::vector<std::string> judge(const std::vector<Event>& history) { return Judge(history).findings(); }

}  // namespace tenure::contract
