// SPDX-License-Identifier: Apache-2.0
// What the tool and its supervisor say to each other: one message per packet of a Unix socket, in memory of both the
// same program. Times are of boot_clock(), which is one for all processes of a host.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/token.hpp>

#include "kill_deadline.hpp"

namespace tenure::tool {

/// Runs the command, if its lease allows. REQUIRES: nothing of an earlier one runs.
struct Start {
  Lease lease;
  Token token;
  char election[max_election_bytes + 1], id[max_candidate_bytes + 1], store[1024];  ///< For its environment.
};
/// Hands a signal on to the command.
struct Forward {
  int signal;
};
/// SIGTERM now, SIGKILL at this time or when the lease demands it.
struct End {
  Clock::Time kill_at;
};
using Order = std::variant<Lease, Start, Forward, End>;  ///< A Lease comes with each renewal.

/// What the supervisor tells. Nothing of the command runs any more.
struct Ended {
  int status;  ///< Of waitpid(), or of the command that could not be started: exit code 126 or 127.
  bool told;   ///< It ended because we ended it, and not by itself or by a signal of the user.
  bool over;   ///< False: on_ousted runs now. A second message will say that it has ended.
};

/// They return false once the other process has gone. No message is ever cut.
bool send(int socket, const Order& order);
bool send(int socket, const Ended& ended);

/// Nothing: there is none now, or the other one has gone; then `gone` is set.
std::optional<Order> receive_order(int socket, bool& gone);
std::optional<Ended> receive_ended(int socket, bool& gone);

/// A message of a Unix socket, and what came with it.
struct Packet {
  std::string text{};  ///< At most 4095 bytes of it. Empty also once the other end of a connection is closed.
  std::optional<uid_t> sender{};   ///< The user, where the socket has SO_PASSCRED.
  std::vector<int> descriptors{};  ///< They are the receiver's to close.
};

/// Nothing: there is none now.
std::optional<Packet> receive_packet(int socket);

}  // namespace tenure::tool
