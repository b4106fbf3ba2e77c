// SPDX-License-Identifier: Apache-2.0
// Real servers for tests: private, on loopback, gone with the object that started them, or with its process.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenure/etcd.hpp>

#include "eventually.hpp"
#include "port.hpp"
#include "scratch.hpp"

namespace tenure::etcd::test {

using tenure::test::eventually;
using tenure::test::Scratch;

/// Why there is no server to run. Empty: there is one.
std::string missing_server();

/// Skips the test that says so if there is no server to run.
#define TENURE_NEEDS_ETCD() \
  if (const auto missing = ::tenure::etcd::test::missing_server(); !missing.empty()) GTEST_SKIP() << missing

/// Keys and certificates of an authority of our own, in PEM: "ca", "server" (for 127.0.0.1) and "client", each with
/// .pem and .key; "other" is another authority's.
void make_certificates(const std::filesystem::path& directory);

/// What its clients need.
struct Access {
  bool tls{};
  std::string ca_file{}, cert_file{}, key_file{};
  std::string user{}, password{};
};

/// A member of a cluster, alone by default. Throws std::runtime_error with its log if it does not start.
class Server {
 public:
  struct Plan {
    std::vector<std::string> options{};  ///< Of its command line, beside ours.
    Access access{};
    std::string cluster{};  ///< --initial-cluster. Empty: it is alone.
    std::string name{"one"};
    tenure::test::Port port{}, peers{};
  };
  Server();
  explicit Server(Plan plan);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string address() const { return "127.0.0.1:" + plan_.port.text(); }
  /// To it alone.
  Options options() const;
  std::string log() const;
  const std::filesystem::path& directory() const { return scratch_.path(); }

  void kill();    ///< SIGKILL, and waits.
  void launch();  ///< On the same ports and data. On the thread that lives longest, for it ends with that.
  bool await();   ///< Until it serves.
  void start();   ///< Both.
  void freeze(bool on);
  void mend();  ///< What a test that failed may have left: it runs again.

  /// What etcdctl prints to stdout and stderr. Throws if it fails.
  std::string ctl(const std::string& words) const;
  Access access() const { return plan_.access; }
  void set_access(Access access) { plan_.access = std::move(access); }

 private:
  Plan plan_;
  Scratch scratch_{tenure::test::server_data()};
  pid_t pid_{-1};
};

/// Three members.
class Cluster {
 public:
  Cluster();
  Server& operator[](std::size_t i) { return *members_[i]; }
  std::size_t size() const { return members_.size(); }
  /// To all of them, in order.
  Options options() const;
  std::size_t leader();  ///< Its number.

 private:
  std::vector<std::unique_ptr<Server>> members_;
};

}  // namespace tenure::etcd::test
