// SPDX-License-Identifier: Apache-2.0
// Reads a request from a connection, and writes the answer to it.
#pragma once
#include <exception>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "connection.hpp"
#include "head.hpp"
#include "state.hpp"

namespace tenure::http {

/// What a server speaks: HTTP/1.1 with one request for each connection, whose body is not read. `allows`: whether a
/// request may name this Host. `stop` ends the streams.
class Protocol {
 public:
  Protocol(std::function<Response(const Request&)> answer, std::function<bool(std::string_view)> allows,
           std::stop_token stop)
      : answer_(std::move(answer)), allows_(std::move(allows)), stop_(std::move(stop)) {}

  void serve(Connection& connection) const try {
    const auto text = connection.read_head();
    if (!text) return;
    const auto head = head_of(*text);
    const auto out = head ? answered(*head) : refusal(400, no_http);
    const bool chunked = out.events && head->protocol == "HTTP/1.1";
    const bool with_body = !head || head->method != "HEAD";
    if (!connection.write(begin_of(out, chunked) + (with_body ? out.body : "")) || !out.events) return;
    while (const auto piece = out.events->next(stop_))
      if (!connection.write(chunked ? hex(piece->size()) + "\r\n" + *piece + "\r\n" : *piece)) return;
    if (chunked) connection.write("0\r\n\r\n");
  } catch (const std::exception&) {  // No memory is left, for instance. The client learns it by the end.
  }

 private:
  static constexpr const char* no_http =
      "the request is no HTTP/1.1: its head has at most 16 KiB, lines that end with CRLF, and one Host. See RFC 9112";

  Response answered(const Head& head) const try { return answer_to(head); } catch (const std::exception&) {
    return refusal(500, "the answer could not be made; ask again");
  }

  Response answer_to(const Head& head) const {
    if (!allows_(head.host))
      return refusal(421,
                     "ask for localhost, this host's own name or a numeric address, or name this Host in "
                     "ServerOptions::hosts");
    const auto mark = std::min(head.target.find('?'), head.target.size());
    const auto path = head.target.substr(0, mark);
    const auto decoded = percent_decoded(path, path.size()).value_or(std::string(path));
    return answer_({.method = head.method,
                    .path = decoded,
                    .authorization = head.authorization,
                    .query = head.target.substr(std::min(mark + 1, head.target.size()))});
  }

  static std::string begin_of(const Response& answer, bool chunked) {
    auto out = "HTTP/1.1 " + std::to_string(answer.status) + " \r\nConnection: close\r\nContent-Type: " + answer.type;
    for (const auto& [name, value] : answer.headers) out.append("\r\n").append(name).append(": ").append(value);
    if (chunked) out += "\r\nTransfer-Encoding: chunked";
    if (!answer.events) out += "\r\nContent-Length: " + std::to_string(answer.body.size());
    return out.append(end_of_head);
  }

  const std::function<Response(const Request&)> answer_;
  const std::function<bool(std::string_view)> allows_;
  const std::stop_token stop_;
};

}  // namespace tenure::http
