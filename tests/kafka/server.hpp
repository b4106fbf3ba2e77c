// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <utility>

namespace tenure::kafka::test {

/// Whether tests may use real brokers: TENURE_KAFKA_VERSION is set.
bool available();

/// A broker that nobody else uses, with sessions as short as the NELI paper advises. It is of TENURE_KAFKA_VERSION. It
/// ends with this object, or with this process.
class Server {
 public:
  /// Throws std::runtime_error.
  Server();
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string brokers() const { return brokers_; }
  /// Clients of the first port are told to stay there. A relay is to stand there, and to forward to the second one.
  std::pair<int, int> relay() const { return relay_; }

  void crash() const;  ///< By SIGKILL. Then it serves again, on the same data.
  void freeze(bool on) const;

 private:
  void node(const std::string& action) const;

  std::filesystem::path directory_;
  std::string brokers_;
  std::pair<int, int> relay_;
};

}  // namespace tenure::kafka::test
