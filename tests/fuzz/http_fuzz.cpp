// SPDX-License-Identifier: Apache-2.0
// Bytes of a client, as they come by a socket: one request is answered at most, only who has the token bears it, and
// what is answered is HTTP. A page of somebody else's is not allowed in by its host.
#include <fcntl.h>
#include <sys/socket.h>

#include <array>

#include "bearer.hpp"
#include "fuzz.hpp"
#include "protocol.hpp"

namespace tenure::fuzz {
namespace {

std::string answered_to(const std::string& text, const std::function<http::Response(const http::Request&)>& answer) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "a client connects");
  require(::send(ends[0], text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()), "it asks");
  ::shutdown(ends[0], SHUT_WR);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  std::string out;
  {
    http::Connection connection(ends[1], std::chrono::seconds(1));
    http::Protocol(answer, http::host_filter({"x"}), {}).serve(connection);
  }
  std::array<char, 4096> some;
  for (ssize_t got = 0; (got = ::recv(ends[0], some.data(), some.size(), MSG_DONTWAIT)) > 0;)
    out.append(some.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  return out;
}

void request(const std::string& text) {
  int asked = 0;
  const auto out = answered_to(text.substr(0, 32'768), [&](const http::Request& request) {
    ++asked;
    require(!contains(request.query, "\n") && !contains(request.query, " "), "a query is a part of one line");
    require(!http::bears(request.authorization, canary) || contains(text, canary), "a token is what the client has");
    return http::Response{.status = 200, .type = "text/plain", .body = "body"};
  });
  require(asked <= 1, "one request is answered");
  require(out.empty() || out.starts_with("HTTP/1."), "an answer is HTTP");
  require(asked == 0 || contains(out, "\r\n\r\n"), "an answer has a head");
}

/// A page of somebody else's has a name of his: dots, letters, and no number.
void host(const std::string& text) {
  const auto allows = http::host_filter({"x"});
  allows(text);
  require(!allows("e.example" + (contains(text, ":") ? "" : text)), "no other name is allowed");
}

}  // namespace

const std::vector<Target> targets{{"http_request", request}, {"http_host", host}};

}  // namespace tenure::fuzz
