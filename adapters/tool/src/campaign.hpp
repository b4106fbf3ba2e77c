// SPDX-License-Identifier: Apache-2.0
// The tool's end of `tenure run`: it takes part in the election, and hands each deadline on to the guardian.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/leader_manager.hpp>

#include "guardian.hpp"
#include "health.hpp"
#include "place.hpp"
#include "progress.hpp"
#include "service_manager.hpp"
#include "teller.hpp"
#include "tree.hpp"
#include "wakeup.hpp"

namespace tenure::tool {

/// When the command must be ended, by the timing of its lease.
struct Pace {
  Clock::Duration grace;   ///< Between SIGTERM and SIGKILL.
  Clock::Duration spare;   ///< Between SIGKILL and the moment at which others may lead.
  Clock::Duration beyond;  ///< Between the deadline of Leadership and that moment.
  Clock::Duration look;    ///< How often we look for a new deadline.

  /// An end of the lease leaves at most so much of `grace` that one renewal may fail before SIGTERM.
  static Pace of(const Timing& timing, Clock::Duration grace);
  Lease lease(Clock::Time deadline) const;
};

struct Conduct {
  std::optional<Clock::Duration> wait{};  ///< For the lead, at first and after each loss.
  Clock::Duration grace{};
  bool once{};                                                          ///< A loss ends us.
  bool kill_on_loss{};                                                  ///< SIGKILL without SIGTERM.
  Clock::Duration stall_after{}, stall_pause{std::chrono::minutes(1)};  ///< As in Hooks.
  std::string http{}, step_down_token{};                                ///< Where to tell by HTTP; empty: nowhere.
  std::vector<std::string> http_hosts{};                                ///< As ServerOptions::hosts.
  Log log{};
};

/// What is made before the first thread.
struct Means {
  Guardian& guardian;
  ServiceManager& service;
  Progress* progress;  ///< None: the command is not watched.
};

/// One thread uses it. REQUIRES: every signal that we hand on is blocked.
class Campaign {
 public:
  Campaign(const Opened& opened, const Means& means, const Conduct& conduct);
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;
  int run();  ///< Returns the exit code, once nothing of the command runs and the lead is given back.

 private:
  using Event = std::variant<Elected, Ousting, Error>;

  Hooks hooks();
  void begin();
  void turn();
  void leave();
  void post(Event event);
  void take_events();
  void elected(const Elected& event);
  void ousting(const Ousting& event);
  void take_signals();
  void renew_lease();
  void take_progress() const;
  void take_end();
  void ended(const Ended& end);
  void watch_guardian();
  void order(const Order& order);
  void lose_guardian(const char* why);
  void await_anew();
  void tell_state();
  void tell_alive();
  Clock::Time next_look() const;
  void forget_old_trouble();
  int after_waiting();

  const Opened& opened_;
  Guardian& guardian_;
  ServiceManager& service_;
  Progress* const progress_;
  const Conduct conduct_;
  Teller teller_;
  const Pace pace_;
  Wakeup wakeup_;

  Tree tree_;
  std::mutex mutex_;
  std::deque<Event> events_;

  bool leaving_{};
  bool unheard_{};     ///< The guardian could not be told something.
  bool running_{};     ///< It was ordered, and has not ended.
  bool lead_ended_{};  ///< ousting() has been called for the tenure of the command that runs, or ran last.
  bool stopped_by_user_{};
  Clock::Time deadline_{};  ///< As the guardian knows it.
  Clock::Time gone_by_{};   ///< If the command runs later than that, we kill it too.
  Clock::Time wait_until_{Clock::Time::max()};
  std::optional<Error> trouble_;  ///< The store's last word, if it was none.
  std::uint64_t answers_before_trouble_{};
  std::optional<int> result_;
  Token token_{};
  Clock::Time next_beat_{};  ///< For the service manager.
  LeaderManager manager_;    ///< Its hooks use the others.
  std::optional<Health> health_;
};

}  // namespace tenure::tool
