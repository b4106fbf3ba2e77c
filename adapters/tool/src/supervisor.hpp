// SPDX-License-Identifier: Apache-2.0
// The process that runs the command and ends it in time. It needs no store, and no thread. README.md has the protocol,
// and what holds if it or the tool is stopped or killed.
#pragma once
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include <tenure/clock.hpp>

#include "process_tree.hpp"
#include "supervisor_protocol.hpp"
#include "terminal.hpp"

namespace tenure::tool {

/// What is run in each tenure.
struct Command {
  std::vector<std::string> words{};
  std::string on_elected{}, on_ousted{};  ///< For /bin/sh, or empty. If on_elected fails, the command is not run.
  Clock::Duration grace{};                ///< For what is left behind, for on_ousted, and if the tool has gone.
  sigset_t mask{};                        ///< The signals that the command finds blocked.

  int progress{-1};                      ///< The descriptor by which it tells of progress, or none,
  int progress_as{-1};                   ///< and its number there; -1: it does not get it.
  std::string notify_socket{};           ///< Its NOTIFY_SOCKET, if it is watched,
  std::chrono::microseconds watchdog{};  ///< and its WATCHDOG_USEC.
};

/// What its process does, until the tool has gone and nothing of the command is left. Returns its exit code.
int serve_as_supervisor(const Command& command, int orders, int witness, const Terminal& terminal,
                        const ControlGroup& group);

/// The tool's end. One thread uses it.
class Supervisor {
 public:
  /// Forks it. Throws std::system_error. REQUIRES: no other thread runs, and every signal is blocked.
  explicit Supervisor(const Command& command);
  ~Supervisor();  ///< Leaves it to end, with what it runs, and waits for that.
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Also lets it go on if somebody has stopped it. False: it has gone.
  bool order(const Order& order) const;
  std::optional<Ended> ended(bool& gone) const { return receive_ended(socket_, gone); }
  int socket() const { return socket_; }    ///< Readable if ended() has something to tell.
  int witness() const { return witness_; }  ///< It keeps a copy of what is sent here: see <tenure/file.hpp>.

  /// For the case that it does not do so in time: kills all below it. Something new may appear meanwhile.
  void kill_all() const;
  /// For the case that it does not work any more: kills it too, and returns once nothing is left.
  void replace();

 private:
  const Terminal terminal_;
  const ControlGroup group_;
  pid_t pid_{};
  int socket_{-1}, witness_{-1};
};

}  // namespace tenure::tool
