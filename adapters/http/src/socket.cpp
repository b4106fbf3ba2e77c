// SPDX-License-Identifier: Apache-2.0
// Parses addresses, and makes a listening socket.
#include "socket.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::http {
namespace {

[[noreturn]] void refuse(std::string_view address) {
  throw std::invalid_argument("ServerOptions::address: \"" + printable(address) +
                              "\" is not HOST:PORT with a numeric host, as 127.0.0.1:8080 or [::1]:8080");
}

/// "127.0.0.1:80" as {"127.0.0.1", "80"}, "[::1]:80" as {"::1", "80"}.
std::pair<std::string, std::string> host_and_port(std::string_view address) {
  const auto colon = address.rfind(':');
  if (colon == address.npos || !number<std::uint16_t>(address.substr(colon + 1))) refuse(address);
  auto host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != (host.find(':') != host.npos)) refuse(address);
  return {std::string(host), std::string(address.substr(colon + 1))};
}

/// No name is looked up, since that may take any time.
CHandle<addrinfo, ::freeaddrinfo> parsed(const std::string& address) {
  const auto [host, port] = host_and_port(address);
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0 || !found) refuse(address);
  return owned<::freeaddrinfo>(found);
}

}  // namespace

Descriptor listen_at(const std::string& address) {
  const auto at = parsed(address);
  Descriptor out(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A port whose last connections are still closing is free. Two servers at one port it does not allow.
  const int on = 1;
  if (!out || ::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(out.get(), at->ai_addr, at->ai_addrlen) != 0 || ::listen(out.get(), SOMAXCONN) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen at " + address);
  return out;
}

std::string address_of(int fd) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  auto* const plain = reinterpret_cast<sockaddr*>(&at);
  if (::getsockname(fd, plain, &size) != 0 ||
      ::getnameinfo(plain, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  const bool v6 = at.ss_family == AF_INET6;
  return (v6 ? "[" : "") + std::string(host) + (v6 ? "]:" : ":") + port;
}

}  // namespace tenure::http
