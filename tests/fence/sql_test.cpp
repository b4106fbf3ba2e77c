// SPDX-License-Identifier: Apache-2.0
// Goal: in PostgreSQL a former leader writes nothing. Method: a table as fence.hpp says, in a real server, and the
// tokens of two leaders. Then the example's table and the example's function.
#include <tenure/fence.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <pqxx/pqxx>
#include <string>

#include <tenure/fake_leadership.hpp>

#include "two_leaders.hpp"

/// examples/fencing.cpp, which README shows.
pqxx::result write_total(const tenure::Leadership& leadership, pqxx::transaction_base& db, int sum, int id);

namespace tenure::fence {
namespace {

class SqlFence : public testing::Test {
 protected:
  void SetUp() override {
    const auto* url = std::getenv("TENURE_POSTGRES");
    if (url == nullptr) GTEST_SKIP() << "needs a real server: set TENURE_POSTGRES to libpq's connection string";
    database_ = std::make_unique<pqxx::connection>(url);
    execute("create temporary table totals (id int primary key, sum int, fence bigint not null default 0)");
    execute("insert into totals values (1, 0), (2, 0)");
  }
  pqxx::result execute(const std::string& sql) {
    pqxx::nontransaction transaction(*database_);
    return transaction.exec(sql);
  }
  /// Writes as a leader does, and returns the number of rows.
  std::size_t write(Token token, int sum, int id) {
    pqxx::nontransaction transaction(*database_);
    const auto statement = sql_update("totals", "sum = $2", "id = $3");
    const auto fence = std::to_string(token.value);
#if PQXX_VERSION_MAJOR > 7 || (PQXX_VERSION_MAJOR == 7 && PQXX_VERSION_MINOR >= 10)
    const auto result = transaction.exec(statement, pqxx::params{fence, sum, id});
#else
    const auto result = transaction.exec_params(statement, fence, sum, id);
#endif
    return static_cast<std::size_t>(result.affected_rows());
  }
  int sum(int id) { return execute("select sum from totals where id = " + std::to_string(id))[0][0].as<int>(); }

  std::unique_ptr<pqxx::connection> database_;
};

TEST_F(SqlFence, AFormerLeaderWritesNothing) {
  const auto [stale, later] = test::two_leaders();
  EXPECT_EQ(write(stale, 10, 1), 1u);
  EXPECT_EQ(write(stale, 11, 1), 1u) << "it writes as often as it likes while it leads";
  EXPECT_EQ(write(later, 20, 1), 1u);
  EXPECT_EQ(write(stale, 12, 1), 0u);
  EXPECT_EQ(sum(1), 20);
}

TEST_F(SqlFence, EachRowHasAFenceOfItsOwn) {
  const auto [stale, later] = test::two_leaders();
  EXPECT_EQ(write(later, 20, 1), 1u);
  EXPECT_EQ(write(stale, 10, 2), 1u) << "a row knows of a later leader only once that has written it";
  EXPECT_EQ(write(later, 21, 2), 1u);
  EXPECT_EQ(write(stale, 11, 2), 0u);
}

/// What README shows after "// " in a line that begins so.
std::string line_of_example(const std::string& beginning) {
  std::ifstream in(TENURE_FENCING_EXAMPLE);
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find("// " + beginning); at != line.npos) return line.substr(at + 3);
  return "";
}

TEST_F(SqlFence, TheExampleWritesAsItSays) {
  execute("drop table totals");
  const auto table = line_of_example("create table ");
  ASSERT_NE(table, "");
  execute("create temporary " + table.substr(std::string("create ").size()));
  execute("insert into totals values (1, 0)");
  EXPECT_EQ(sql_update("totals", "sum = $2", "id = $3"), line_of_example("update "));
#ifdef TENURE_WITH_EXAMPLE
  const auto [stale, later] = test::two_leaders();
  FakeLeadership former, present;
  former.lead(stale, std::chrono::minutes(1)), present.lead(later, std::chrono::minutes(1));
  const auto written = [this](const FakeLeadership& by, int sum) {
    pqxx::nontransaction transaction(*database_);
    return write_total(by.leadership(), transaction, sum, 1).affected_rows();
  };
  EXPECT_EQ(written(former, 10), 1);
  EXPECT_EQ(written(present, 20), 1);
  EXPECT_EQ(written(former, 11), 0) << "a later leader has written";
  EXPECT_EQ(written(FakeLeadership(), 12), 0) << "it does not lead";
  EXPECT_EQ(sum(1), 20);
#endif
}

}  // namespace
}  // namespace tenure::fence
