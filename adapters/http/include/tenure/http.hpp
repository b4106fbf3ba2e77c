// SPDX-License-Identifier: Apache-2.0
// What a process tells of its election, or of its many elections, by HTTP. <tenure/http_server.hpp> is a small server
// for it; <tenure/http_mount.hpp> puts it on a httplib::Server of your own; by answer() any other library can serve it.
// README.md describes the documents.
//
//   tenure::LeaderManager manager(...);
//   tenure::http::Site site(manager, {.self = {.name = "a", .address = "10.0.0.7:80"}});
//   tenure::http::Server server(site, {.address = "127.0.0.1:8080"});
//
//   GET  /           a page for people, which follows by /events
//   GET  /leader     200 if this process leads at that very moment; else 503, and who leads
//   GET  /healthz    503 if the manager's threads no longer turn, or a call hangs; to follow is healthy
//   GET  /readyz     200 if it is healthy, takes part, has not stalled, and knows who leads
//   GET  /status     all of it, with what happened of late
//   GET  /metrics    for Prometheus
//   GET  /events     server-sent events: "change" for each change, "status" at first and once a second
//   POST /step-down  resigns; with "Authorization: Bearer TOKEN" only
//
// Of Elections it tells the same, of one by /leader?election=NAME and /step-down?election=NAME, and of all by the rest.
// There is no /events. Of a GroupObserver /leader?election=NAME is 200 if anybody leads, and says who: for a router.
//
// Foreign text is escaped to ASCII. No answer has a secret in it. HEAD is answered as GET, without the body.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/elections.hpp>
#include <tenure/group_observer.hpp>
#include <tenure/http_export.hpp>
#include <tenure/leader_manager.hpp>

namespace tenure::http {

/// What a Site tells, and whom it allows what.
struct SiteOptions {
  Candidate self{};  ///< Who we are, as others read it. May be empty.

  /// Whoever sends it may end our tenure. Empty: nobody may. It has at least 16 characters: visible ASCII, no '%'.
  std::string step_down_token{};

  /// So many clients of /events at a time. More are told 503. Each has a thread of the server to itself.
  std::size_t streams{8};

  /// So long may the manager, or the store's call of a leader, or ousting() be late before /healthz fails, or
  /// GroupObserverOptions::changed run. A follower's call may be late for twelve times as long.
  Clock::Duration stuck_after{std::chrono::seconds(5)};
};

/// What a client asks, of whatever HTTP server.
struct Request {
  std::string_view method{}, path{};
  std::string_view authorization{};  ///< The header's value.
  std::string_view query{};          ///< What follows the '?', as it was sent.
};

/// The endless body of /events. One thread uses it; the Site may end before it does.
class TENURE_HTTP_EXPORT Events {
 public:
  virtual ~Events() = default;

  /// Waits for the next piece, at most a second. Nothing: that was the last one; the Site ended, or `stop` is
  /// requested.
  virtual std::optional<std::string> next(std::stop_token stop = {}) = 0;
};

/// What the server is to answer.
struct Response {
  int status{};
  std::string type{}, body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::shared_ptr<Events> events{};  ///< If it is there, it is the body.
};

/// The answers about one manager, or about the elections of a group. Of a manager it has a thread, which follows the
/// changes. Any thread may call any method. In a forked child it answers 503, and may be destroyed.
class TENURE_HTTP_EXPORT Site {
 public:
  /// Throws std::invalid_argument if an option cannot be, and std::system_error if the thread cannot be started.
  /// REQUIRES: the manager outlives this, and was made after fork().
  explicit Site(LeaderManager& manager, SiteOptions options = {});

  /// The same of many elections. SiteOptions::streams says nothing here.
  explicit Site(Elections& elections, SiteOptions options = {});

  /// Of a group that this process only watches: /leader, /healthz, /readyz and /status.
  explicit Site(const GroupObserver& observer, SiteOptions options = {});

  /// Ends all streams. What was mounted answers 503 from then on, and touches what it told of no more.
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  /// Does not block.
  Response answer(const Request& request) const { return answerer()(request); }

  /// The same as a value that may outlive this.
  std::function<Response(const Request&)> answerer() const;

 private:
  class State;
  class OfManager;
  class OfElections;
  class OfObserver;
  std::shared_ptr<State> state_;
};

/// Whether a request may name this Host. `hosts`: as ServerOptions::hosts. Any thread may call it.
TENURE_HTTP_EXPORT std::function<bool(std::string_view host)> host_filter(std::vector<std::string> hosts);

}  // namespace tenure::http
