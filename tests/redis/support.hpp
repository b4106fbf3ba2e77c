// SPDX-License-Identifier: Apache-2.0
// What the tests of Redis share with those of other stores, and what they have besides.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/lock_table.hpp>
#include <tenure/redis.hpp>

#include "fake_server.hpp"
#include "messages.hpp"
#include "server.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::redis::test {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::Lines;
using tenure::test::within;

using tenure::test::error_of;
using tenure::test::expect_error;
using tenure::test::FakeServer;
using tenure::test::read;
using tenure::test::record;
using tenure::test::refused_read;
using tenure::test::refused_swap;
using tenure::test::released;
using tenure::test::swap;
using tenure::test::value;

/// The same answer to every command of a batch.
inline std::string to_each(const std::string& request, const std::string& answer) {
  std::string out;
  for (std::size_t at = 0; at != request.npos; at = request.find("\r\n*", at + 1)) out += answer;
  return out;
}

/// A Sentinel that announces nothing. Whoever asks it for a master is given this one. `about`: what it answers to
/// SENTINEL MASTER, if it is not that.
class FakeSentinel {
 public:
  explicit FakeSentinel(int port, std::string host = "127.0.0.1", std::string about = {})
      : host_(std::move(host)), about_(std::move(about)), port_(port) {}
  /// One that knows so many others.
  static std::string knows(int others) {
    return "*4\r\n" + text("name") + text("main") + text("num-other-sentinels") + text(std::to_string(others));
  }
  void name(int port) { port_ = port; }
  void tell(std::string about) {
    const std::lock_guard lock(mutex_);
    about_ = std::move(about);
  }
  std::string address() const { return server_.address(); }
  int port() const { return server_.port(); }

 private:
  static std::string text(const std::string& of) { return "$" + std::to_string(of.size()) + "\r\n" + of + "\r\n"; }

  const std::string host_;
  std::mutex mutex_;  // of the next
  std::string about_;
  std::atomic<int> port_;
  FakeServer server_{[this](const std::string& request) {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (std::size_t at = 0, next = 0; at != request.npos; at = next) {
      next = request.find("\r\n*", at + 1);
      const bool about = request.substr(at, next - at).find("MASTER\r\n") != request.npos;
      out += about && !about_.empty() ? about_ : "*2\r\n" + text(host_) + text(std::to_string(port_));
    }
    return FakeServer::Answer{out};
  }};
};

using Names = std::vector<std::string>;
inline Names both(Names some, const Names& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

/// The user "u" of the ACL that <tenure/redis.hpp> shows, who may run these commands alone.
inline void set_user(Server& server, const Names& commands, const std::string& channels = "&tenure:*") {
  Names words{"ACL", "SETUSER", "u", "reset", "on", ">" + canary, "~tenure:*", channels};
  for (const auto& command : commands) words.push_back("+" + command);
  server.ask(words);
  server.ask({"SCRIPT", "FLUSH"});
}

/// With all of these `use` succeeds. It is forbidden without one of `needed`, and goes on without one of `useful`.
inline void expect_least_privileges(Server& server, const Names& needed, const Names& useful,
                                    const std::function<std::optional<Error>()>& use) {
  const auto all = both(needed, useful);
  set_user(server, all);
  EXPECT_EQ(use(), std::nullopt);
  for (const auto& command : all) {
    auto others = all;
    std::erase(others, command);
    set_user(server, others);
    const auto error = use();
    if (std::find(useful.begin(), useful.end(), command) != useful.end()) {
      EXPECT_EQ(error, std::nullopt) << "without " << command << " it goes on all the same";
      continue;
    }
    ASSERT_TRUE(error) << command;
    expect_error(*error, Fault::forbidden, {"says NOPERM"});
  }
}

}  // namespace tenure::redis::test
