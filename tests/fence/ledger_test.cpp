// SPDX-License-Identifier: Apache-2.0
// Goal: of processes that are stopped in the midst of transactions, killed and restarted, none commits anything after
// its successor's claim; and without the fence, or with a plain predicate, some do. Method: bookkeepers at a real
// server of the test's own, a nemesis, and the server's own times of commits: a trigger writes down each claim.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <optional>

#include "expect_sound.hpp"
#include "scratch.hpp"
#include "server.hpp"

namespace tenure::fence {
namespace {

using namespace std::chrono_literals;
using postgres::test::sql;
using tenure::test::Fleet;
using tenure::test::Plan;

constexpr auto term = 500ms;

class Ledger : public testing::Test {
 protected:
  void SetUp() override {
    if (postgres::test::shared().empty()) GTEST_SKIP() << "needs a real server: tests/run starts one (docker/postgres)";
    server_.emplace(postgres::test::Server::How{.settings = {"track_commit_timestamp=on"}});
    sql(server_->by_socket(), R"(
create table ledger (token bigint not null);
create table claims (token bigint primary key);
create function noted() returns trigger language plpgsql as $$
begin
  insert into public.claims values (new.token) on conflict do nothing;  -- a renewal writes the same one
  return null;
end $$;
create trigger noted after insert or update of token on tenure_elections for each row execute function noted())");
  }

  /// Bookkeepers and a nemesis at work, until enough has happened.
  void run(const std::string& fence, Plan plan, const std::function<bool()>& enough) {
    const tenure::test::Scratch scratch;
    Fleet fleet(TENURE_BOOKKEEPER,
                {"--store", url(), "--election", "jobs", "--term-ms", std::to_string(term.count()), "--ledger",
                 "ledger", "--fence", fence},
                scratch / "journal");
    plan.enough = enough;
    plan.recovered = [&] { return fleet.leader() != 0; };
    EXPECT_TRUE(tenure::test::Nemesis(fleet, plan).run(std::cout));
    std::cout << count("ledger") << " transactions committed by " << count("claims") << " leaders, " << torn()
              << " of them after their successor's claim\n";
    EXPECT_TRUE(plan.enough()) << "too little happened to show anything";
  }

  long count(const std::string& table) const {
    return sql(server_->by_socket(), "select count(*) from " + table)[0][0].as<long>();
  }
  /// How many transactions of a former leader were committed after the claim of a later one.
  long torn() const {
    return sql(server_->by_socket(), R"(
select count(*) from ledger as l where exists (
  select from claims as c
  where c.token > l.token and pg_xact_commit_timestamp(c.xmin) < pg_xact_commit_timestamp(l.xmin)))")[0][0]
        .as<long>();
  }
  std::string url() const {
    return "postgresql://postgres:" + server_->password() + "@127.0.0.1:" + std::to_string(server_->port()) +
           "/postgres";
  }

  std::optional<postgres::test::Server> server_;
};

TEST_F(Ledger, NothingOfAFormerLeaderIsCommittedAfterTheNextClaim) {
  run("strict", Plan::from_environment(term, 20), [&] { return count("claims") >= 10 && count("ledger") >= 100; });
  EXPECT_EQ(torn(), 0) << TENURE_PROMISE;
}

TEST_F(Ledger, WithoutAFenceOrByAPlainPredicateSomethingIs) {
  for (const std::string fence : {"none", "plain"}) {
    SCOPED_TRACE(fence);
    sql(server_->by_socket(), "truncate ledger, claims");
    auto plan = Plan::from_environment(term);
    plan.duration = 5s;
    run(fence, plan, [&] { return torn() > 0; });
  }
}

}  // namespace
}  // namespace tenure::fence
