// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: which of several servers is tried first.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Remembers which servers failed. Otherwise each new connection would first try a server that is away.
/// REQUIRES: one thread at a time.
template <class Server>
class TryOrder {
 public:
  /// First come those that did not fail since they served, beginning after the last one tried. Then come the others,
  /// the oldest failure first.
  std::vector<Server> of(std::vector<Server> servers) const {
    if (last_)
      if (const auto last = std::find(servers.begin(), servers.end(), *last_); last != servers.end())
        std::rotate(servers.begin(), last + 1, servers.end());
    std::stable_sort(servers.begin(), servers.end(),
                     [this](const Server& a, const Server& b) { return rank(a) < rank(b); });
    return servers;
  }

  void tried(const Server& server) { last_ = server; }  ///< Tell it before each try.
  /// It did what was asked, so that its failures count no more.
  void served(const Server& server) { std::erase(failed_, server); }
  /// It did not answer, or does not serve.
  void failed(const Server& server) {
    std::erase(failed_, server);
    if (failed_.size() == most_remembered) failed_.erase(failed_.begin());
    failed_.push_back(server);
  }

 private:
  static constexpr std::size_t most_remembered = 64;

  /// 0: it did not fail.
  std::size_t rank(const Server& server) const {
    const auto found = std::find(failed_.begin(), failed_.end(), server);
    return found == failed_.end() ? 0 : static_cast<std::size_t>(found - failed_.begin()) + 1;
  }

  std::optional<Server> last_;
  std::vector<Server> failed_;  ///< The latest at the end.
};

}  // namespace tenure
