// SPDX-License-Identifier: Apache-2.0
// Real servers for tests: private, on loopback, gone with the object that started them, or with its process.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/redis.hpp>

#include "eventually.hpp"
#include "port.hpp"
#include "scratch.hpp"

struct redisReply;

namespace tenure::test {
class ClockShim;
}

namespace tenure::redis::test {

using tenure::test::eventually;
using tenure::test::Scratch;

/// TENURE_REDIS_SERVER, or the first of redis-server, valkey-server and what Debian's redis-tools has of it.
/// Empty: none.
std::string server_program();

/// Why there is no server to run. Empty: there is one.
std::string missing_server();

/// Skips the test that says so if there is no server to run.
#define TENURE_NEEDS_REDIS() \
  if (const auto missing = ::tenure::redis::test::missing_server(); !missing.empty()) GTEST_SKIP() << missing

/// A name that no other test and no other run uses.
std::string unique_name(const std::string& stem);

/// Persistent, fsync at every write. Throws std::runtime_error with its log if it does not start.
class Server {
 public:
  /// Lines of its configuration beside ours.
  explicit Server(std::vector<std::string> settings = {}, bool sentinel = false);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  pid_t pid() const { return pid_; }
  int port() const { return port_.number(); }
  std::string address() const { return "127.0.0.1:" + port_.text(); }
  std::string socket() const { return scratch_ / "socket"; }
  const std::filesystem::path& directory() const { return scratch_.path(); }
  std::string log() const;

  void stop();   ///< SIGTERM, and waits.
  void kill();   ///< SIGKILL, and waits.
  void start();  ///< On the same port and data; on the thread that lives longest, for it ends with that.
  void freeze(bool on);
  void mend();  ///< What a test that failed may have left: it runs again.
  void step_clock(Clock::Duration by);

  /// A command's answer, elements of lists by blanks, errors as they are. Logged in by `AUTH <password>` if not empty.
  std::string ask(const std::vector<std::string>& command);
  std::string password;

  /// `calls` of INFO commandstats.
  long calls(const std::string& command);
  /// One line of INFO.
  std::string info(const std::string& name);

 private:
  bool try_start();
  bool serves();
  void end(int signal);

  const std::string program_;
  const bool sentinel_;
  std::vector<std::string> settings_;
  Scratch scratch_{tenure::test::server_data()};
  std::unique_ptr<tenure::test::ClockShim> shim_;
  tenure::test::Port port_;
  pid_t pid_{-1};
};

/// Several masters, every slot served.
class Cluster {
 public:
  explicit Cluster(int masters = 3);
  Server& operator[](std::size_t i) { return *nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }
  void await_ok();
  std::string id_of(std::size_t i);
  /// Which of them serves this key.
  std::size_t owner_of(const std::string& key);

 private:
  std::vector<std::unique_ptr<Server>> nodes_;
};

}  // namespace tenure::redis::test
