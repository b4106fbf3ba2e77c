// SPDX-License-Identifier: Apache-2.0
// Who the master is, by what the Sentinels announce and answer.
#pragma once
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/redis.hpp>

namespace tenure::redis {

/// What a Sentinel announces of a fail-over: "main 127.0.0.1 6379 127.0.0.1 6380". nullopt: it is nothing of the kind.
struct Switch {
  std::string name;
  Address from, to;
};
std::optional<Switch> switch_of(const std::string& message);

/// Listens to +switch-master of each Sentinel and asks them all. It does so on a thread for each, so that a Sentinel's
/// trouble holds nobody up. An announcement is followed at once. Of answers the majority counts: that of all Sentinels,
/// or of those that answer if some are away.
///
/// A child of fork has no such threads, and a lock may have been held at the fork: there nothing is asked, and master()
/// says why.
///
/// REQUIRES: there is one caller at a time.
class Sentinels {
 public:
  struct Named {
    Address master;
    std::stop_token moved;  ///< Requested once they name another.
  };

  /// `client` is our name in CLIENT LIST.
  Sentinels(const Options& options, std::string client);
  ~Sentinels();
  Sentinels(const Sentinels&) = delete;
  Sentinels& operator=(const Sentinels&) = delete;

  /// Judges by answers to what was asked at `since` (boot_clock()) or later. With Clock::Time::min() the newest count.
  Result<Named> master(Clock::Time since, const Limit& limit);

  /// The master did not answer: what was said before is not relied upon any more.
  void doubt();

  /// The master that was named last, whether a Sentinel still answers or not.
  std::optional<Named> known();

  /// Asks them all, waits for nothing, and returns when it asked.
  Clock::Time ask();

  /// Does the same as tenure::wait_out(). It needs no descriptor of its own if the limit's clock is boot_clock().
  void wait_out(const Limit& limit);

  /// Returns once what people should hear of.
  std::optional<std::string> take_warning();

 private:
  bool forked() const;
  void end();

  struct State;
  const std::shared_ptr<State> state_;
  const int made_by_;  ///< Process.
  std::vector<std::thread> threads_;
};

/// Null: the options name none.
std::shared_ptr<Sentinels> sentinels_of(const Options& options, const std::string& client);

}  // namespace tenure::redis
