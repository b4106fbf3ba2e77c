// SPDX-License-Identifier: Apache-2.0
// Goal: two tables of PostgreSQL keep the contract that all stores of groups share, however they are reached. Method:
// the suite, by TCP and through PgBouncer in transaction mode.
#include <array>
#include <stdexcept>

#include "group_suite.hpp"
#include "messages.hpp"
#include "stepped_server.hpp"

namespace tenure::contract {
namespace {

using namespace postgres::test;

/// Tests that do something to the server share one that is this process's alone; the others that of tests/run.
bool does_something_to_the_server() {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  return std::ranges::any_of(std::array{"Hangs", "Stepped"},
                             [&](const char* part) { return name.find(part) != name.npos; });
}

class GroupTables final : public GroupUnderTest {
 public:
  explicit GroupTables(bool pooled) : pooled_(pooled) {
    if (does_something_to_the_server()) server_ = std::make_unique<SteppedServer>();
    options_ = fresh_group(by_socket());
    if (!pooled) options_.conninfo = server_ ? server_->get().conninfo() : shared();
    if (!pooled) return;
    pool_ = std::make_unique<PgBouncer>(server_ ? server_->get().directory().string() : shared("TENURE_POSTGRES_DIR"));
    options_.conninfo = pool_->conninfo();
  }
  ~GroupTables() override {
    if (server_) {  // The tables go with it.
      server_->hang(false);
      return;
    }
    sql(by_socket(), "drop table " + options_.sessions + ", " + options_.leads);
    if (!reader_.empty()) sql(by_socket(), "drop role " + reader_);
  }

  std::shared_ptr<GroupStore> connect(const std::string& group) override {
    return postgres::open_group(options_, group);
  }
  /// The pooler knows no role of ours.
  std::shared_ptr<GroupStore> reader(const std::string& group) override {
    if (pooled_) return connect(group);
    reader_ = unique_name("reader");
    sql(by_socket(), "create role " + reader_ + " login password '" + tenure::test::canary + "'; grant select on " +
                         options_.sessions + ", " + options_.leads + " to " + reader_);
    auto options = options_;
    options.user = reader_;
    options.password = tenure::test::canary;
    return postgres::open_group(options, group);
  }
  bool pushes() const override { return !pooled_; }
  int rounds() const override { return 10; }
  bool lose_session(const std::string& group, SessionId id) override {
    sql(by_socket(), "delete from " + options_.sessions + " where grp = convert_to('" + group +
                         "', 'UTF8') and session = " + std::to_string(id.value));
    return true;
  }
  bool spoil_lead(const std::string&, const std::string& election) override {
    sql(by_socket(), "update " + options_.leads + " set token = -1 where election = '" + election + "'");
    return true;
  }
  bool mend_lead(const std::string&, const std::string& election) override {
    sql(by_socket(), "update " + options_.leads +
                         " set token = (extract(epoch from clock_timestamp()) * 1000)::bigint, session = 0, "
                         "released = false, changed = pg_current_xact_id() where election = '" +
                         election + "'");
    return true;
  }
  bool step_clock(Clock::Duration by) override { return own_server().step_clock(by); }
  bool hang(bool on) override {
    own_server().hang(on);
    return true;
  }

 private:
  /// Fails where a test was renamed, which would otherwise be skipped.
  SteppedServer& own_server() const {
    return server_ ? *server_ : throw std::logic_error("this test needs a server of its own");
  }
  std::string by_socket() const { return server_ ? server_->get().by_socket() : shared("TENURE_POSTGRES_SOCKET"); }

  const bool pooled_;
  std::unique_ptr<SteppedServer> server_;
  std::unique_ptr<PgBouncer> pool_;
  postgres::Options options_;
  std::string reader_;
};

GroupSubject by(std::string name, bool pooled) {
  return {std::move(name), [pooled] { return std::make_unique<GroupTables>(pooled); },
          shared().empty() ? "needs a real server: tests/run starts one (docker/postgres)" : ""};
}

const auto ways = testing::Values(by("tcp", false), by("pgbouncer", true));

INSTANTIATE_TEST_SUITE_P(real, GroupContract, ways, name_of_group);
INSTANTIATE_TEST_SUITE_P(real, GuardOfACommit, ways, name_of_group);

}  // namespace
}  // namespace tenure::contract
