// SPDX-License-Identifier: Apache-2.0
// A Site on a httplib::Server of your own. Your program links cpp-httplib itself.
#pragma once
#include <httplib.h>

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/http.hpp>

namespace tenure::http {

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
/// REQUIRES: the server does not run yet. Limits on what clients may send, and for how long, are its own: set its
/// payload length, its time-outs and its threads. Each client of /events keeps one of these threads, so give it more
/// than SiteOptions::streams. Whom a request names as its host is not looked at here: at loopback, refuse a foreign
/// `Host` yourself, as our Server does; otherwise a page of somebody else's can read the answers through a browser. End
/// the Site before you stop the server; otherwise stop() waits up to a second.
inline void mount(httplib::Server& server, const Site& site, const std::string& prefix = {}) {
  const auto handler = [answer = site.answerer(), skip = prefix.size()](const httplib::Request& asked,
                                                                        httplib::Response& out) {
    const auto authorization = asked.get_header_value("Authorization");
    write(answer({asked.method, std::string_view(asked.path).substr(skip), authorization, query_of(asked)}), out);
  };
  if (!prefix.empty()) server.Get(prefix + "/", handler);
  for (const auto* path : {"/leader", "/healthz", "/readyz", "/status", "/metrics", "/events", "/step-down"}) {
    server.Get(prefix + path, handler);
    server.Post(prefix + path, handler);
  }
}

}  // namespace tenure::http
