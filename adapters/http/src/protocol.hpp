// SPDX-License-Identifier: Apache-2.0
// Lets httplib read a request from our socket and write the answer to it.
#pragma once
#include <csignal>
#include <functional>
#include <stop_token>
#include <utility>

#include <tenure/http_mount.hpp>

#include "connection.hpp"
#include "head.hpp"
#include "hosts.hpp"
#include "look.hpp"

namespace tenure::http {

/// The constructor of httplib's server makes the process ignore SIGPIPE, which its children would inherit.
class KeepSigpipe {
 public:
  KeepSigpipe() { ::sigaction(SIGPIPE, nullptr, &before_); }
  void restore() const { ::sigaction(SIGPIPE, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

/// The connection of this thread.
inline thread_local Connection* connection_here = nullptr;

/// httplib's reading and writing, without its sockets.
class Protocol final : private KeepSigpipe, public httplib::Server {
 public:
  Protocol(std::function<Response(const Request&)> answer, Hosts hosts, std::stop_token stop, int any_socket)
      : answer_(std::move(answer)), hosts_(std::move(hosts)), stop_(std::move(stop)) {
    restore();
    svr_sock_ = any_socket;  // Otherwise it thinks that it is stopped, and ends every stream.
    set_pre_routing_handler([this](const httplib::Request& asked, httplib::Response& out) {
      const auto authorization = asked.get_header_value("Authorization");
      write(!well_formed(connection_here->read_so_far()) ? malformed()
            : !hosts_.allow(asked.get_header_value("Host"))
                ? misdirected()
                : answer_({asked.method, asked.path, authorization, query_of(asked)}),
            out, stop_);
      return HandlerResponse::Handled;
    });
  }

  void serve(Connection& connection) {
    connection_here = &connection;
    process(connection);
    connection_here = nullptr;
  }

 private:
  static Response malformed() {
    return {.status = 400,
            .type = "application/json",
            .body = error_document("the request is no HTTP/1.1: see RFC 9112, and name one Host")};
  }
  static Response misdirected() {
    return {
        .status = 421,
        .type = "application/json",
        .body = error_document(
            "ask for localhost, this host's own name or a numeric address, or name this Host in ServerOptions::hosts")};
  }

  /// Versions of httplib differ in what process_request() takes.
  template <class Client>
  void process(Client& client) {
    bool closed = false;
    const auto begin = [](httplib::Request& request) {
      connection_here->answers();
      request.ranges.clear();                    // What is asked for in parts is answered whole,
      request.headers.erase("Accept-Encoding");  // and not compressed.
      request.headers.erase("Expect");           // A body is not read.
    };
    if constexpr (requires { process_request(client, true, closed, begin); })
      process_request(client, true, closed, begin);
    else
      process_request(client, {}, 0, {}, 0, true, closed, begin);
  }

  const std::function<Response(const Request&)> answer_;
  const Hosts hosts_;
  const std::stop_token stop_;
};

}  // namespace tenure::http
