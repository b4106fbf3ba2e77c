// SPDX-License-Identifier: Apache-2.0
// The public methods of the manager. Each hands over to its Shell.
#include <tenure/leader_manager.hpp>

#include <utility>

#include "election/shell.hpp"

namespace tenure {

LeaderManager::LeaderManager(std::shared_ptr<Backend> backend, Timing timing, const Hooks& hooks, Clock& clock)
    : shell_(std::make_shared<Shell>(std::move(backend), timing, hooks, clock)) {}

LeaderManager::~LeaderManager() { Engine::finish(shell_); }

void LeaderManager::start() { shell_->start(); }

void LeaderManager::resign(std::optional<Clock::Duration> cool_down) { shell_->resign(cool_down); }

void LeaderManager::stop() { shell_->stop(); }

Leadership LeaderManager::leadership() const { return Leadership(shell_->validity); }

Metrics LeaderManager::metrics() const { return shell_->metrics(); }

std::optional<Token> LeaderManager::await_leadership(Clock::Duration within, std::stop_token stop) {
  std::optional<Token> token;
  shell_->waiters.await(within, stop, [&] {
    token = leadership().token();
    return token || shell_->over();
  });
  return token;
}

std::optional<Error> LeaderManager::last_error() const { return shell_->last_error(); }

std::uint64_t LeaderManager::changes() const { return shell_->waiters.changes(); }

std::uint64_t LeaderManager::await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop) {
  shell_->waiters.await(within, stop, [&] { return changes() != seen || shell_->over(); });
  return changes();
}

bool LeaderManager::await_ended(Clock::Duration within, std::stop_token stop) {
  return shell_->waiters.await(within, stop, [&] { return shell_->over(); });
}

}  // namespace tenure
