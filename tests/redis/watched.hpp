// SPDX-License-Identifier: Apache-2.0
// A master with replicas and Sentinels, for tests.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server.hpp"
#include "support.hpp"

namespace tenure::redis::test {

/// A master, its replicas, and Sentinels that watch them with a password of their own.
struct Watched {
  /// Sentinels demote a former master four such pauses after they have replaced it.
  explicit Watched(int count, int replicas = 1, std::chrono::milliseconds pause = std::chrono::seconds(2)) {
    for (int i = 1; i < replicas; ++i) more.push_back(replica());
    for (int i = 0; i < count; ++i)
      sentinels.push_back(std::make_unique<Server>(
          std::vector<std::string>{
              "requirepass " + canary, "sentinel sentinel-pass " + canary,
              "sentinel monitor main 127.0.0.1 " + std::to_string(first.port()) + " " + std::to_string(count / 2 + 1),
              "sentinel auth-pass main " + canary, "sentinel down-after-milliseconds main 500",
              "sentinel failover-timeout main 3000"},
          true));
    for (auto& sentinel : sentinels) {
      sentinel->password = canary;
      // Else it asks every ten seconds which replicas there are. Redis before 7 knows no such command.
      sentinel->ask({"SENTINEL", "DEBUG", "INFO-PERIOD", "300", "PUBLISH-PERIOD", std::to_string(pause.count())});
    }
    first.password = second.password = canary;
  }

  std::string url(const std::string& name = "main") const {
    std::string out = "redis+sentinel://:" + canary + "@127.0.0.1:1";  // the first of them is down
    for (const auto& sentinel : sentinels) out += "," + sentinel->address();
    return out + "/" + name + "?sentinel_password=" + canary;
  }

  /// Whether every Sentinel knows the replica and the others.
  bool in_step() const {
    for (const auto& sentinel : sentinels) {
      const auto info = sentinel->ask({"INFO", "sentinel"});
      if (info.find("slaves=" + std::to_string(1 + more.size()) + ",sentinels=" + std::to_string(sentinels.size())) ==
          info.npos)
        return false;
    }
    return true;
  }

  Server first{{"requirepass " + canary, "masterauth " + canary}};
  Server second{replica_settings()};
  std::vector<std::unique_ptr<Server>> more;
  std::vector<std::unique_ptr<Server>> sentinels;

 private:
  std::vector<std::string> replica_settings() const {
    return {"requirepass " + canary, "masterauth " + canary, "replicaof 127.0.0.1 " + std::to_string(first.port())};
  }
  std::unique_ptr<Server> replica() const {
    auto made = std::make_unique<Server>(replica_settings());
    made->password = canary;
    return made;
  }
};

}  // namespace tenure::redis::test
