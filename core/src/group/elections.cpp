// SPDX-License-Identifier: Apache-2.0
// The public methods of Elections. Each hands over to its Shell.
#include <tenure/elections.hpp>

#include <utility>

#include <tenure/kit/names.hpp>

#include "group/group_shell.hpp"

namespace tenure {

Elections::Elections(std::shared_ptr<GroupStore> store, Candidate candidate, const Timing& timing, const Hooks& hooks,
                     Spread spread, int hook_threads, Clock& clock)
    : Elections(Exclusive::yes, std::move(store), std::move(candidate), timing, hooks, spread, hook_threads, clock) {}

Elections::Elections(Exclusive exclusive, std::shared_ptr<GroupStore> store, Candidate candidate, const Timing& timing,
                     const Hooks& hooks, Spread spread, int hook_threads, Clock& clock)
    : shell_(std::make_shared<Shell>(exclusive, std::move(store), std::move(candidate), timing, hooks, spread,
                                     hook_threads, clock)) {}

Elections::~Elections() { Engine::finish(shell_); }

void Elections::start() { shell_->start(); }

void Elections::join(const std::string& election, std::shared_ptr<const Hooks> hooks) {
  check_election(election);
  if (hooks) check_hooks(*hooks);
  shell_->join_elections({election}, std::move(hooks));
}

void Elections::join(const std::vector<std::string>& elections) {
  for (const auto& election : elections) check_election(election);
  shell_->join_elections(elections, nullptr);
}

void Elections::leave(const std::string& election) { shell_->leave(election); }

void Elections::resign(const std::string& election, std::optional<Clock::Duration> cool_down) {
  shell_->resign(election, cool_down);
}

bool Elections::hand_over(const std::string& election, const std::string& to) {
  return shell_->hand_over(election, to);
}

void Elections::stop() { shell_->stop(); }

bool Elections::is_leader(std::string_view election) const noexcept { return shell_->leads(election); }

Leadership Elections::leadership(const std::string& election) const { return Leadership(shell_->validity(election)); }

bool Elections::exclusive() const noexcept { return shell_->mode == Exclusive::yes; }

std::vector<std::pair<std::string, Token>> Elections::led() const { return shell_->led(); }

std::vector<std::string> Elections::unled() const { return shell_->unled(); }

GroupMetrics Elections::metrics() const { return shell_->metrics(); }

std::optional<Error> Elections::last_error() const { return shell_->last_error(); }

std::uint64_t Elections::changes() const { return shell_->waiters.changes(); }

std::uint64_t Elections::await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop) {
  shell_->waiters.await(within, stop, [&] { return changes() != seen || shell_->over(); });
  return changes();
}

}  // namespace tenure
