// SPDX-License-Identifier: Apache-2.0
#include "orders.hpp"

#include <sys/socket.h>

#include <cerrno>
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
  do got = ::recv(socket, &message, sizeof message, MSG_DONTWAIT);
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

}  // namespace tenure::tool
