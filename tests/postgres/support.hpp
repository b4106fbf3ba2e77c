// SPDX-License-Identifier: Apache-2.0
// A table of one's own at a real server, roles of one's own, and questions to both.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/lock_table.hpp>
#include <tenure/postgres.hpp>

#include "messages.hpp"
#include "server.hpp"
#include "store_calls.hpp"

namespace tenure::postgres::test {

using namespace std::chrono_literals;
using tenure::test::canary;  // in every password here
using tenure::test::expect_error;
using tenure::test::record;
using tenure::test::released;
using tenure::test::value;

/// Every error that a test sees goes through here.
inline Error seen(Error error) {
  EXPECT_THAT(error.message, testing::Not(testing::HasSubstr(canary)));
  EXPECT_LE(error.message.size(), 1000u);
  for (const char c : error.message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << error.message;
  return error;
}

template <class T>
Error error_of(const Result<T>& result) {
  if (!result) return seen(result.error());
  ADD_FAILURE() << "an error was expected";
  return {};
}

/// Of an answer or a sight that must be Unknown.
template <class Verdict>
Error unknown(const Verdict& verdict) {
  if (const auto* none = std::get_if<tenure::Unknown>(&verdict)) return seen(none->error);
  ADD_FAILURE() << "Unknown was expected";
  return {};
}

/// The first wait of a connection asks for news and returns, because what came before was not heard.
inline void begin_to_listen(ConditionalStore& store) {
  const auto limit = within(10s);
  store.await_change(std::nullopt, limit);
  EXPECT_FALSE(limit.passed());
}

/// A transaction of somebody else's that holds what it took until it is let go.
class Elsewhere {
 public:
  explicit Elsewhere(const std::string& statement, const std::string& server = shared("TENURE_POSTGRES_SOCKET"))
      : connection_(server), work_(connection_) {
    work_.exec(statement);
  }
  void commit() { work_.commit(); }

 private:
  pqxx::connection connection_;
  pqxx::work work_;
};

inline bool applied(const Result<Swap>& result) {
  if (!result) tenure::test::excuse_if_busy();
  return result && result->applied;
}

class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shared().empty()) GTEST_SKIP() << "needs a real server: tests/run starts one (docker/postgres)";
    options_ = fresh_table(shared());
  }
  void TearDown() override {
    if (shared().empty() || options_.table.empty()) return;
    admin("drop table if exists " + options_.table + " cascade");
    for (const auto& role : roles_) admin("drop owned by " + role + "; drop role " + role);
  }

  static pqxx::result admin(const std::string& statements) { return sql(shared("TENURE_POSTGRES_SOCKET"), statements); }

  /// A new role that may do so with the table, and the options to be it, by TCP with a password.
  Options role(const std::string& privileges = "select, insert, update", const std::string& settings = "") {
    const auto name = unique_name("role");
    admin("create role " + name + " login password '" + canary + "'");
    roles_.push_back(name);
    if (!privileges.empty()) admin("grant " + privileges + " on " + options_.table + " to " + name);
    if (!settings.empty()) admin("alter role " + name + " " + settings);
    auto out = options_;
    out.user = name;
    out.password = canary;
    return out;
  }

  /// Those that are known at the server by this name. How many.
  static std::size_t end_sessions(const std::string& application) {
    return admin("select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = '" +
                 application + "'")
        .size();
  }

  std::shared_ptr<ConditionalStore> store() const { return postgres::store(options_, "jobs"); }
  static std::shared_ptr<ConditionalStore> store(const Options& options) { return postgres::store(options, "jobs"); }
  std::shared_ptr<Backend> backend(const std::string& name) const { return open(options_, "jobs", {name, ""}); }

  /// One that is known at the server by this name.
  Options named(const std::string& application) const {
    auto out = options_;
    out.conninfo += " application_name=" + application;
    return out;
  }

  Options options_;
  std::vector<std::string> roles_;
};

}  // namespace tenure::postgres::test
