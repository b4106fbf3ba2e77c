// SPDX-License-Identifier: Apache-2.0
// What the guardian's process does.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doom.hpp"
#include "guardian.hpp"
#include "terminal.hpp"
#include "wakeup.hpp"

namespace tenure::tool {

class Watchman {
 public:
  Watchman(const Command& command, int orders, int witness, Terminal terminal, const ControlGroup& group);
  int serve();  ///< Until the tool has gone, and nothing of the command is left.

 private:
  enum class Phase {
    idle,
    prelude,    ///< on_elected runs.
    command,    ///< The command runs.
    leftovers,  ///< It has ended, and others that it started have not.
    epilogue    ///< on_ousted runs. The lease does not limit it.
  };

  void hear();
  void pass_on(int signal) const;
  void keep_witness();
  void drop_witness();
  void obey(const Start& start);
  void tell_of(const Start& start) const;
  void launch(Phase phase, const std::vector<std::string>& words);
  [[noreturn]] void become(const std::vector<std::string>& words, pid_t before) const;
  void reap();
  void main_stopped(int signal) const;
  void main_ended(int status);
  void nothing_left();
  void enforce(Clock::Time now);
  void terminate() const;
  void kill();
  void tell_of_stranger(pid_t stranger);

  const Command& command_;
  const int orders_, witness_;
  const Terminal terminal_;
  const ControlGroup& group_;
  Wakeup wakeup_;
  bool tool_gone_{};
  Phase phase_{Phase::idle};
  Doom doom_;
  pid_t main_{};  ///< Also the group that it leads.
  bool main_runs_{};
  bool owes_ousted_{};  ///< Something of this tenure was started, so on_ousted has to run after it.
  Ended result_{};
  bool stranger_told_{};
  int copy_{-1};            ///< Of the file store's lock.
  bool copy_is_of_next_{};  ///< It came after the order to start.
};

}  // namespace tenure::tool
