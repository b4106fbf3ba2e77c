// SPDX-License-Identifier: Apache-2.0
// The engine of many elections: their GroupCandidacy, asked of a GroupStore.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/elections.hpp>

#include "election/engine.hpp"
#include "group/group_candidacy.hpp"
#include "group/slots.hpp"

namespace tenure {

/// Throws std::invalid_argument for hooks that a group of elections does not offer, and for stall times that cannot be.
void check_hooks(const Hooks& hooks);

class TENURE_NO_EXPORT Elections::Shell final : public EngineOf<GroupCandidacy> {
 public:
  Shell(Exclusive exclusive, std::shared_ptr<GroupStore> store, Candidate candidate, const Timing& timing,
        const Hooks& hooks, const Spread& spread, int hook_threads, Clock& clock);

  void join_elections(std::vector<std::string> elections, SharedHooks hooks);
  void leave(const std::string& election);
  void resign(const std::string& election, std::optional<Clock::Duration> cool_down);
  bool hand_over(const std::string& election, const std::string& to);
  bool leads(std::string_view election) const noexcept { return static_cast<bool>(slots_.now(election)); }
  std::shared_ptr<GroupValidity> validity(const std::string& election);
  std::vector<std::pair<std::string, Token>> led() const;
  std::optional<Incumbent> incumbent(const std::string& election);
  std::vector<std::string> unled();
  GroupMetrics metrics() const;
  std::size_t kept() const;  ///< Entries of our maps, for the tests. REQUIRES: no thread runs.
  bool forked() const noexcept override { return page_->forked(); }

  const Exclusive mode;

 private:
  void hear_progress(Clock::Time now) override;
  void ousting_returned(Clock::Time now, const std::string& election) override {
    machine_.ousting_returned(now, election);
  }
  void hooks_hang(Clock::Time now, bool hang) override { machine_.hooks_hang(now, hang); }
  void carry_out(Effect& effect) override;
  Clock::Time published() const noexcept override { return Clock::Time(Clock::Duration(page_->view().deadline)); }
  Fact answer_to(const GroupQuestion& question, const std::stop_token& interrupted);
  Token told(Token token) const { return mode == Exclusive::yes ? token : Token{}; }
  SharedHooks hooks_of(const std::string& election) const;
  std::shared_ptr<GroupValidity> make_validity(const std::string& election);

  const std::shared_ptr<GroupStore> store_;
  const std::shared_ptr<LeasePage> page_;
  std::map<std::string, SharedHooks, std::less<>> own_hooks_;  ///< Of elections that have some. The decider's own.
  Slots slots_;
};

}  // namespace tenure
