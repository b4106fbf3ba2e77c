// SPDX-License-Identifier: Apache-2.0
// A real broker of a test's own.
#pragma once
#include <filesystem>
#include <string>

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
  int port() const { return std::stoi(brokers_.substr(brokers_.rfind(':') + 1)); }

  void crash() const;  ///< By SIGKILL. Then it serves again, on the same data.
  void freeze(bool on) const;

 private:
  void node(const std::string& action) const;

  std::filesystem::path directory_;
  std::string brokers_;
};

}  // namespace tenure::kafka::test
