// SPDX-License-Identifier: Apache-2.0
// Real servers for tests: private, on loopback, gone with the object that started them, or with its process.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include <tenure/object.hpp>

namespace tenure::object::test {

/// Why there is no server of this kind to run. Empty: there is one.
std::string missing_server(const std::string& kind);

/// Skips the test that says so if there is no such server to run.
#define TENURE_NEEDS_OBJECT(kind) \
  if (const auto missing = ::tenure::object::test::missing_server(kind); !missing.empty()) GTEST_SKIP() << missing

/// moto, versitygw, fakegcs or azurite. Throws std::runtime_error if it does not start.
class Server {
 public:
  explicit Server(std::string kind);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string url() const { return url_; }
  /// Below a prefix that nobody else uses.
  Options options();
  void freeze(bool on) const;
  bool restart();  ///< With its data. False: it keeps none.
  /// So many requests for what is below this prefix the server itself has logged. REQUIRES: it is moto.
  int requests(const std::string& prefix) const;

 private:
  void read();

  const std::string kind_;
  std::filesystem::path directory_;
  std::string url_;
  pid_t pid_{-1};
  int prefixes_{};
};

}  // namespace tenure::object::test
