// SPDX-License-Identifier: Apache-2.0
// Goal: a table of PostgreSQL keeps the contract that all stores share, however it is reached. Method: the suite,
// by TCP, by a Unix socket, and through PgBouncer in transaction mode with fewer sessions at the server than
// candidates.
#include <array>
#include <stdexcept>

#include "contract_suite.hpp"
#include "stepped_server.hpp"

namespace tenure::contract {
namespace {

using namespace postgres::test;

enum class Way { tcp, unix_socket, pgbouncer };

/// Tests that do something to the server share one that is this process's alone; the others that of tests/run.
bool needs_own_server() {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  return std::ranges::any_of(std::array{"Restart", "Hangs", "Stepped", "TokensRise"},
                             [&](const char* part) { return name.find(part) != name.npos; });
}

class Table final : public StoreUnderTest {
 public:
  explicit Table(Way way) : way_(way) {
    if (needs_own_server()) server_ = std::make_unique<SteppedServer>();
    options_ = fresh_table(by_socket());
    if (way == Way::tcp) options_.conninfo = server_ ? server_->get().conninfo() : shared();
    if (way != Way::pgbouncer) return;
    pool_ = std::make_unique<PgBouncer>(server_ ? server_->get().directory().string() : shared("TENURE_POSTGRES_DIR"));
    options_.conninfo = pool_->conninfo();
  }

  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return postgres::open(options_, election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override {
    return postgres::store(options_, election);
  }
  Timing short_timing() const override { return short_terms_of(seconds(1)); }
  bool pushes() const override { return way_ != Way::pgbouncer; }
  int contended_tenures() const override { return 20; }

  bool restart() override {
    own_server().get().restart();
    return true;
  }
  bool hang(bool on) override {
    own_server().hang(on);
    return true;
  }
  bool step_clock(Clock::Duration by) override { return own_server().step_clock(by); }

 private:
  /// Fails where a test was renamed, which would otherwise be skipped.
  SteppedServer& own_server() const {
    return server_ ? *server_ : throw std::logic_error("this test needs a server of its own: see needs_own_server()");
  }
  std::string by_socket() const { return server_ ? server_->get().by_socket() : shared("TENURE_POSTGRES_SOCKET"); }

  const Way way_;
  std::unique_ptr<SteppedServer> server_;
  std::unique_ptr<PgBouncer> pool_;
  postgres::Options options_;
};

Subject by(std::string name, Way way) {
  return {std::move(name), [way] { return std::make_unique<Table>(way); },
          shared().empty() ? "needs a real server: tests/run starts one (docker/postgres)" : ""};
}

const auto subjects = testing::Values(by("tcp", Way::tcp), by("pgbouncer", Way::pgbouncer));
const auto of_all = testing::Values(by("unix_socket", Way::unix_socket));  // which only libpq tells from TCP

INSTANTIATE_TEST_SUITE_P(real, BackendContract, subjects, name_of);
INSTANTIATE_TEST_SUITE_P(real, StoreContract, subjects, name_of);
INSTANTIATE_TEST_SUITE_P(Long, BackendContract, of_all, name_of);
INSTANTIATE_TEST_SUITE_P(Long, StoreContract, of_all, name_of);

}  // namespace
}  // namespace tenure::contract
