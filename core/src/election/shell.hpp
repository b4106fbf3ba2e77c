// SPDX-License-Identifier: Apache-2.0
// The engine of one election: its Candidacy, asked of a Backend.
#pragma once
#include <memory>
#include <optional>

#include <tenure/leader_manager.hpp>

#include "election/candidacy.hpp"
#include "election/engine.hpp"
#include "election/validity.hpp"

namespace tenure {

class TENURE_NO_EXPORT LeaderManager::Shell final : public EngineOf<Candidacy> {
 public:
  Shell(std::shared_ptr<Backend> backend, const Timing& timing, const Hooks& hooks, Clock& clock);

  void resign(std::optional<Clock::Duration> cool_down);
  Metrics metrics() const;
  bool forked() const noexcept override { return validity->forked(); }

  const std::shared_ptr<OwnValidity> validity;

 private:
  void hear_progress(Clock::Time) override { machine_.progressed(validity->progressed_at()); }
  void ousting_returned(Clock::Time now, const std::string&) override { machine_.ousting_returned(now); }
  void carry_out(Effect& effect) override;
  Clock::Time published() const noexcept override { return validity->deadline(); }
  Fact answer_to(const tenure::Question& question, const std::stop_token& interrupted);
  Result<Answer> answer_of_store(const tenure::Question& question, const Limit& limit);

  const std::shared_ptr<Backend> backend_;
  std::optional<Token> heard_, published_;  ///< The decider's own.
};

}  // namespace tenure
