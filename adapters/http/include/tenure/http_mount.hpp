// SPDX-License-Identifier: Apache-2.0
// A Site on a httplib::Server of your own. Your program links cpp-httplib itself.
#pragma once
#include <httplib.h>

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/http.hpp>

namespace tenure::http {

/// The largest body of a request that what is mounted reads. It has no use for one.
inline constexpr std::size_t max_mounted_body_bytes = std::size_t{16} * 1024;

/// Writes an answer as httplib's. `stop` ends a stream.
inline void write(const Response& answered, httplib::Response& out, std::stop_token stop = {}) {
  out.status = answered.status;
  for (const auto& [name, value] : answered.headers) out.set_header(name, value);
  if (!answered.events) return out.set_content(answered.body, answered.type);
  const auto next = [events = answered.events, stop = std::move(stop)](std::size_t, httplib::DataSink& sink) {
    const auto piece = events->next(stop);
    if (piece) return sink.write(piece->data(), piece->size());
    sink.done();
    return true;
  };
  out.set_chunked_content_provider(answered.type, next);
}

/// What follows the first '?', as it was sent.
inline std::string_view query_of(const httplib::Request& asked) {
  const std::string_view target = asked.target;
  const auto mark = target.find('?');
  return mark == target.npos ? std::string_view() : target.substr(mark + 1);
}

/// Answers below `prefix` ("" or such as "/election"; it has no character that a pattern of httplib understands).
/// With a prefix, its "/" is the page for people. The Site may end before the server: see ~Site().
///
/// Of what our own Server limits, a handler can limit two things, and these hold here, too. A request whose Host is
/// foreign is told 421: name yours in `hosts`, as in ServerOptions::hosts. A body beyond max_mounted_body_bytes is not
/// read: its request is told 413, and its connection ends.
///
/// All else is your server's, and httplib has no limit by default, or a wide one. Set how many threads it has
/// (new_task_queue), because each client of /events and each slow one keeps one: more than SiteOptions::streams. Set
/// how long it waits for a request (set_read_timeout), for its answer to be taken (set_write_timeout) and for the next
/// request (set_keep_alive_timeout), and the bodies of your own pages (set_payload_max_length). It takes connections
/// until the process has no descriptor left, and then the store gets none either.
///
/// REQUIRES: the server does not run yet. End the Site before you stop the server; otherwise stop() waits up to a
/// second.
inline void mount(httplib::Server& server, const Site& site, const std::string& prefix = {},
                  std::vector<std::string> hosts = {}) {
  const auto get = [answer = site.answerer(), skip = prefix.size(), allowed = host_filter(std::move(hosts))](
                       const httplib::Request& asked, httplib::Response& out) {
    const auto authorization = asked.get_header_value("Authorization");
    if (allowed(asked.get_header_value("Host")))
      return write(answer({asked.method, std::string_view(asked.path).substr(skip), authorization, query_of(asked)}),
                   out);
    out.status = 421;
    out.set_content("this Host is not ours: name it to mount()\n", "text/plain");
  };
  const auto post = [get](const httplib::Request& asked, httplib::Response& out, const httplib::ContentReader& body) {
    std::size_t read = 0;
    if (body([&](const char*, std::size_t size) { return (read += size) <= max_mounted_body_bytes; }))
      return get(asked, out);
    out.status = 413;
    // A body that fails ends the connection, on which the rest of the request would be taken for another one.
    out.set_chunked_content_provider("text/plain", [](std::size_t, httplib::DataSink&) { return false; });
  };
  if (!prefix.empty()) server.Get(prefix + "/", get);
  for (const auto* path : {"/leader", "/healthz", "/readyz", "/status", "/metrics", "/events", "/step-down"}) {
    server.Get(prefix + path, get);
    server.Post(prefix + path, post);
  }
}

}  // namespace tenure::http
