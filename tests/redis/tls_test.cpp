// SPDX-License-Identifier: Apache-2.0
// Goal: rediss:// talks to the server that its certificate names, or to nobody. Method: a server with a certificate of
// an authority of the test's own, made by openssl.
#include <gtest/gtest.h>

#include <cstdlib>

#include "server.hpp"
#include "support.hpp"

namespace tenure::redis::test {
namespace {

/// An authority and a certificate for localhost (not for 127.0.0.1).
struct Certificates {
  Certificates() {
    const auto run = [this](const std::string& arguments) {
      const auto command = "cd '" + scratch.path.string() + "' && openssl " + arguments + " >/dev/null 2>&1";
      if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl " + arguments);
    };
    for (const std::string ca : {"ca", "other"})
      run("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=" + ca + " -keyout " + ca + ".key -out " + ca + ".pem");
    run("req -newkey rsa:2048 -nodes -subj /CN=server -addext subjectAltName=DNS:localhost -keyout server.key "
        "-out server.csr");
    run("x509 -req -days 1 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy "
        "-out server.pem");
  }
  std::string file(const std::string& name) const { return scratch.path / name; }
  Scratch scratch;
};

TEST(RedisTls, ChainAndHostNameAreVerified) {
  TENURE_NEEDS_REDIS();
  try {
    store(from_url("rediss://localhost"), "jobs");
  } catch (const std::invalid_argument& e) {
    GTEST_SKIP() << e.what();
  }
  const Certificates made;
  Server plain;
  const auto tls_port = std::to_string(plain.port() + 10'000);  // which it would use in a cluster
  Server server({"tls-port " + tls_port, "tls-cert-file " + made.file("server.pem"),
                 "tls-key-file " + made.file("server.key"), "tls-ca-cert-file " + made.file("ca.pem"),
                 "tls-auth-clients no"});
  const auto at = [&](const std::string& host, const std::string& ca) {
    return store(from_url("rediss://" + host + (ca.empty() ? "" : "?ca_file=" + made.file(ca))), "jobs");
  };
  const auto a = at("localhost:" + tls_port, "ca.pem");
  EXPECT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  a->await_change(Version{{1}, 11}, within(2s));
  EXPECT_TRUE(swap(*at("localhost:" + tls_port, "ca.pem"), Expected{{1}, {11}}, record(2, 12)));
  const auto limit = within(5s);
  a->await_change(Version{{1}, 11}, limit);
  EXPECT_LT(boot_clock().now(), limit.by) << "pushes come through";
  EXPECT_EQ(read(*a).record->beat, 12u);

  for (const auto& [store, what] : {std::pair(at("127.0.0.1:" + tls_port, "ca.pem"), "another name"),
                                    std::pair(at("localhost:" + tls_port, "other.pem"), "another authority"),
                                    std::pair(at("localhost:" + tls_port, ""), "the system's authorities"),
                                    std::pair(at("localhost:" + std::to_string(plain.port()), "ca.pem"), "no TLS")}) {
    const auto error = refused_read(*store);
    EXPECT_NE(error.message.find("TLS was refused"), error.message.npos) << what << ": " << error.message;
  }
  const auto unread = refused_read(*at("localhost:" + tls_port, "none.pem"));
  EXPECT_NE(unread.message.find("the authorities in ca_file cannot be read"), unread.message.npos) << unread.message;

  const auto silent = at("localhost:" + tls_port, "ca.pem");
  server.freeze(true);
  const auto soon = within(60ms);
  EXPECT_TRUE(std::holds_alternative<Error>(silent->read(soon)));
  EXPECT_LT(boot_clock().now(), soon.by + 50ms) << "a handshake that hangs ends by the limit";
  server.freeze(false);
  EXPECT_TRUE(read(*silent).record);
}

}  // namespace
}  // namespace tenure::redis::test
