// SPDX-License-Identifier: Apache-2.0
// Sends and receives packets of a Unix socket.
#include "supervisor_protocol.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

namespace tenure::tool {
namespace {

static_assert(std::is_trivially_copyable_v<Order> && std::is_trivially_copyable_v<Ended>);

template <class Message>
bool send_whole(int socket, const Message& message) {
  ssize_t sent = 0;
  do sent = ::send(socket, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof message);
}

template <class Message>
std::optional<Message> receive_whole(int socket, Message message, bool& gone) {
  ssize_t got = 0;
  do got = ::recv(socket, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
  while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof message)) return message;
  gone = got == 0 || (got < 0 && errno != EAGAIN);
  return std::nullopt;
}

}  // namespace

bool send(int socket, const Order& order) { return send_whole(socket, order); }
bool send(int socket, const Ended& ended) { return send_whole(socket, ended); }

std::optional<Order> receive_order(int socket, bool& gone) { return receive_whole<Order>(socket, Order{}, gone); }
std::optional<Ended> receive_ended(int socket, bool& gone) { return receive_whole<Ended>(socket, Ended{}, gone); }

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
