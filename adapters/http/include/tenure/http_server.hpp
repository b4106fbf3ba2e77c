// SPDX-License-Identifier: Apache-2.0
// A small server of one Site. It needs no httplib where it is included.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/http.hpp>
#include <tenure/http_export.hpp>

namespace tenure::http {

/// Where a Server listens, to whom, and its limits.
struct ServerOptions {
  /// HOST:PORT or [HOST]:PORT, of a numeric host. Port 0: the kernel chooses. There is no TLS, so do not offer another
  /// than loopback where the network is not your own.
  std::string address{"127.0.0.1:0"};

  /// A request must name a numeric address, localhost or this machine's own name as its Host, or one of these. So no
  /// page that a browser shows can read the answers by a name of its own that leads to us (DNS rebinding). Others are
  /// told 421.
  std::vector<std::string> hosts{};

  /// So many connections at a time, each with a thread. If there are more, that one ends which has been sending its
  /// request for longest; so clients that are slow hold up nobody. The process' last 16 descriptors are for others.
  /// REQUIRES: more than SiteOptions::streams.
  std::size_t connections{32};

  /// A request must have come so long after its connection, and its answer must be taken within this.
  Clock::Duration patience{std::chrono::seconds(2)};
};

/// Serves a Site. A connection carries one request, of at most 16 KiB. Any thread may call any method.
/// In a forked child it does nothing, and may be destroyed; its sockets stay open there until exec or the end.
class TENURE_HTTP_EXPORT Server {
 public:
  /// Serves from now on. Throws std::invalid_argument if an option cannot be, and std::system_error, which names the
  /// address, if it cannot be listened on. The Site may end first.
  explicit Server(const Site& site, ServerOptions options = {});

  /// Calls stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Ends all streams and connections, at most `patience` later for an answer that is under way.
  void stop();

  std::string address() const;  ///< With the port that was chosen.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenure::http
