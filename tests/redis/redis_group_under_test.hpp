// SPDX-License-Identifier: Apache-2.0
// What the contract suite of groups needs to know of Redis, whichever way it is reached.
#pragma once
#include <memory>
#include <string>

#include <tenure/redis.hpp>

#include "group_under_test.hpp"
#include "messages.hpp"
#include "server.hpp"

namespace tenure::contract {

class RedisGroup : public GroupUnderTest {
 public:
  std::shared_ptr<GroupStore> connect(const std::string& group) override { return redis::open_group(options(), group); }
  /// With the rights that <tenure/redis.hpp> tells for it.
  std::shared_ptr<GroupStore> reader(const std::string& group) override {
    auto may_read = options();
    may_read.user = "reader";
    may_read.password = tenure::test::canary;
    each([&](redis::test::Server& server) {
      server.ask({"ACL",
                  "SETUSER",
                  may_read.user,
                  "reset",
                  "on",
                  ">" + may_read.password,
                  "~" + may_read.prefix + "*",
                  "&" + may_read.prefix + "*",
                  "+evalsha",
                  "+eval",
                  "+time",
                  "+hget",
                  "+hgetall",
                  "+hmget",
                  "+hscan",
                  "+xlen",
                  "+xrange",
                  "+xrevrange",
                  "+subscribe",
                  "+info",
                  "+asking"});
    });
    return redis::open_group(may_read, group);
  }
  bool can_lose() const override { return true; }
  bool lose_everything() override {
    return each([](redis::test::Server& server) { server.ask({"FLUSHALL"}); });
  }
  bool lose_session(const std::string& group, SessionId id) override {
    const auto key = options().prefix + "{" + group + "}:s";
    return each([&](redis::test::Server& server) { server.ask({"HDEL", key, std::to_string(id.value)}); });
  }
  bool spoil_lead(const std::string& group, const std::string& election) override {
    const auto key = options().prefix + "{" + group + "}";
    return each([&](redis::test::Server& server) { server.ask({"HSET", key + ":e", election, "garbage"}); });
  }
  bool mend_lead(const std::string& group, const std::string& election) override {
    const auto key = options().prefix + "{" + group + "}";
    const auto ms = std::to_string(boot_clock().unix_ms() + 1);
    return each([&](redis::test::Server& server) {
      if (server.ask({"EXISTS", key + ":e"}) != "1") return;  // another one of the cluster has it
      server.ask({"XADD", key + ":log", "*", "0", "", election, ""});
      server.ask({"HSET", key + ":e", election, ms + " 0 0 -"});
    });
  }
  bool step_clock(Clock::Duration by) override {
    return each([by](redis::test::Server& server) { server.step_clock(by); });
  }
  bool hang(bool on) override {
    return each([on](redis::test::Server& server) { server.freeze(on); });
  }

 protected:
  virtual redis::Options options() const = 0;
  virtual std::size_t servers() const { return 1; }
  virtual redis::test::Server& server(std::size_t i) = 0;

 private:
  template <class Do>
  bool each(Do what) {
    for (std::size_t i = 0; i < servers(); ++i) what(server(i));
    return true;
  }
};

}  // namespace tenure::contract
