// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <optional>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/token.hpp>

#include "place.hpp"

namespace tenure::tool {

/// Processes that take part in an election for `drill`, and tell when they lead. None outlives this one. One thread
/// uses it.
class Troupe {
 public:
  static constexpr int cut = SIGUSR1;  ///< A member that gets it breaks its own connections, and makes no new ones.

  struct Lead {
    std::size_t who;
    Token token;
    Clock::Time at;
  };

  /// Forks so many, who wait. REQUIRES: no other thread runs. Throws std::system_error.
  Troupe(const Place& place, std::size_t size);
  ~Troupe();
  Troupe(const Troupe&) = delete;
  Troupe& operator=(const Troupe&) = delete;

  void fill(std::size_t members);             ///< Lets new ones take part, until there are so many.
  Lead await_leader();                        ///< The one that leads. Throws Failed after `patience`.
  Lead await_leader_after(const Lead& last);  ///< The next one. Throws Failed too if its token is not greater.
  void hurt(std::size_t who, int signal) const;
  void heal(const Lead& hurt, int signal);  ///< A stopped one goes on, and is seen to be ousted. Others leave us.

  Clock::Duration patience{};

 private:
  struct Told {
    Lead lead;
    bool ousted;
  };
  enum class State { waits, takes_part, gone };
  struct Member {
    pid_t pid;
    State state;
  };

  [[noreturn]] static void take_part(const Place& place, std::size_t who, int tells);
  bool hear(Clock::Time until);

  int heard_{-1};
  std::vector<Member> members_;
  std::optional<Lead> leader_;         ///< As it told; one that was hurt is none.
  std::optional<Token> ousted_token_;  ///< The last one that ended.
};

}  // namespace tenure::tool
