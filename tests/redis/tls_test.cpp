// SPDX-License-Identifier: Apache-2.0
// Goal: rediss:// talks to the server that its certificate names, or to nobody. Method: a server with a certificate of
// an authority of the test's own, made by openssl.
#include <gtest/gtest.h>

#include <optional>

#include "support.hpp"
#include "tls_server.hpp"

namespace tenure::redis::test {
namespace {

class RedisTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = obstacle_to_tls(); !why.empty()) GTEST_SKIP() << why;
    made.emplace();
  }
  std::shared_ptr<ConditionalStore> open_at(const std::string& address, const std::string& ca) const {
    return store(from_url("rediss://" + address + (ca.empty() ? "" : "?ca_file=" + made->file(ca))), "jobs");
  }
  void expect_refusal(const std::string& address, const std::string& ca, const std::string& words) const {
    const auto error = refused_read(*open_at(address, ca));
    EXPECT_EQ(error.fault, Fault::unreachable) << error.message;
    EXPECT_NE(error.message.find(words), error.message.npos) << error.message;
  }
  /// Some call hears that before anything else ends the handshake.
  static bool hears(ConditionalStore& store, const std::string& words) {
    return eventually([&] { return error_of(store.read(within(100ms))).message.find(words) != std::string::npos; });
  }
  std::optional<Certificates> made;
};

TEST_F(RedisTls, RecordsAndPushesComeThrough) {
  Secured secured(*made);
  const auto there = "localhost:" + secured.port();
  const auto a = open_at(there, "ca.pem");
  EXPECT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  a->await_change(Version{{1}, 11}, within(10s));  // subscribes
  EXPECT_TRUE(swap(*open_at(there, "ca.pem"), Expected{{1}, {11}}, record(2, 12)));
  const auto limit = within(10s);
  a->await_change(Version{{1}, 11}, limit);
  EXPECT_LT(boot_clock().now(), limit.by) << "pushes come through";
  EXPECT_EQ(read(*a).record->beat, 12u);
}

TEST_F(RedisTls, ChainAndHostNameAreVerified) {
  Secured secured(*made);
  expect_refusal("127.0.0.1:" + secured.port(), "ca.pem", "TLS was refused");  // another name
  expect_refusal("localhost:" + secured.port(), "other.pem", "TLS was refused");
  expect_refusal("localhost:" + secured.port(), "", "TLS was refused");  // by the system's authorities
  expect_refusal("localhost:" + secured.port(), "none.pem", "the authorities in ca_file cannot be read");
}

/// A plain server takes the handshake's first bytes for a command, which has ended only if a line feed is among them.
TEST_F(RedisTls, AServerWithoutTlsIsReported) {
  FakeServer answers([](const std::string&) { return FakeServer::Answer{"-ERR unknown command\r\n"}; });
  expect_refusal(answers.address(), "ca.pem", "TLS was refused");
  FakeServer waits([](const std::string&) { return FakeServer::Answer{}; });
  EXPECT_TRUE(hears(*open_at(waits.address(), "ca.pem"), "(TLS handshake; a port without TLS leaves it unanswered)"));
}

TEST_F(RedisTls, AHandshakeThatHangsOutlivesItsCall) {
  Secured secured(*made);
  const auto a = open_at("localhost:" + secured.port(), "ca.pem");
  secured.server.freeze(true);
  EXPECT_TRUE(hears(*a, "still connecting"));
  secured.server.freeze(false);
  EXPECT_FALSE(read(*a).record);
}

}  // namespace
}  // namespace tenure::redis::test
