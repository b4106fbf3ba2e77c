// SPDX-License-Identifier: Apache-2.0
// Goal: over TLS the server is who it says, and whoever may not connect is told what to set. Method: a real server that
// takes nothing else by TCP, with an authority of its own, made by openssl.
#include <gmock/gmock.h>

#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using testing::HasSubstr;

class PostgresTls : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    server_.emplace();
    table_ = fresh_table(server_->by_socket());
  }

  std::string data(const std::string& file) const { return server_->data(file); }
  pqxx::result by_socket(const std::string& statement) const { return sql(server_->by_socket(), statement); }
  std::shared_ptr<ConditionalStore> with(const std::string& settings) const {
    auto options = table_;
    options.conninfo = server_->at_localhost(settings);
    return postgres::store(options, "jobs");
  }
  std::string refusal(const std::string& settings, Fault fault) const {
    const auto error = error_of(with(settings)->read(within(30s)));
    EXPECT_EQ(error.fault, fault);
    return error.message;
  }

  std::optional<TlsServer> server_;
  Options table_;
};

TEST_F(PostgresTls, AServerThatIsVerifiedServes) {
  const auto table = with("sslmode=verify-full application_name=verifies sslrootcert=" + data("ca.pem"));
  EXPECT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(30s))));
  EXPECT_TRUE(value(table->read(within(30s))).record);
  const auto sessions =
      by_socket("select ssl from pg_stat_ssl natural join pg_stat_activity where application_name = 'verifies'");
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_TRUE(sessions[0][0].as<bool>());
}

TEST_F(PostgresTls, AnUnknownAuthorityIsRefusedAndSoIsAnotherName) {
  const auto root = "sslmode=verify-full sslrootcert=";
  EXPECT_THAT(refusal(root + data("other.pem"), Fault::unreachable), HasSubstr("sslrootcert"));
  EXPECT_THAT(
      refusal(root + data("ca.pem") + " host=127.0.0.1", Fault::unreachable),
      testing::AllOf(HasSubstr("does not match host name"), HasSubstr("connect by a name that the certificate has")));
}

/// Why Settings refuses verify-full with hostaddr alone.
TEST_F(PostgresTls, LibpqComparesACertificateWithHostAndNotWithHostaddr) {
  try {
    pqxx::connection(server_->conninfo() +
                     " host='' hostaddr=127.0.0.1 sslmode=verify-full sslrootcert=" + data("ca.pem"));
    ADD_FAILURE() << "libpq does without host now";
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("host name must be specified"));
  }
}

TEST_F(PostgresTls, AConnectionWithoutTlsLearnsThatTheServerRequiresIt) {
  EXPECT_THAT(refusal("sslmode=disable", Fault::forbidden),
              testing::AllOf(HasSubstr("pg_hba.conf"), HasSubstr("sslmode")));
}

TEST_F(PostgresTls, AServerWithoutTlsHasItsOwnError) {
  server_->switch_tls(false);
  EXPECT_THAT(refusal("sslmode=require", Fault::unreachable), HasSubstr("ssl = on"));
}

}  // namespace
}  // namespace tenure::postgres::test
