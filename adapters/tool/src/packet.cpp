// SPDX-License-Identifier: Apache-2.0
#include "packet.hpp"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace tenure::tool {

std::optional<Packet> receive_packet(int socket) {
  std::array<char, 4095> text;
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int) * 16)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;
  Packet out{.text = {text.data(), static_cast<std::size_t>(got)}, .sender = {}, .descriptors = {}};
  for (auto* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
      out.sender = sender.uid;
    } else if (header->cmsg_type == SCM_RIGHTS) {
      out.descriptors.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(out.descriptors.data(), CMSG_DATA(header), out.descriptors.size() * sizeof(int));
    }
  }
  return out;
}

}  // namespace tenure::tool
