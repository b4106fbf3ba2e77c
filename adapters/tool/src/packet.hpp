// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tenure::tool {

/// A message of a Unix socket, and what came with it.
struct Packet {
  std::string text{};  ///< At most 4095 bytes of it. Empty also once the other end of a connection is closed.
  std::optional<uid_t> sender{};   ///< The user, where the socket has SO_PASSCRED.
  std::vector<int> descriptors{};  ///< They are the receiver's to close.
};

/// Nothing: there is none now.
std::optional<Packet> receive_packet(int socket);

}  // namespace tenure::tool
