// SPDX-License-Identifier: Apache-2.0
// A server over TLS, with a certificate of an authority of the test's own.
#pragma once
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "server.hpp"

namespace tenure::redis::test {

/// An authority and a certificate for localhost (not for 127.0.0.1).
struct Certificates {
  Certificates() {
    const auto run = [this](const std::string& arguments) {
      const auto command = "cd '" + scratch.path().string() + "' && openssl " + arguments + " >/dev/null 2>&1";
      if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl " + arguments);
    };
    const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    for (const std::string ca : {"ca", "other"})
      run("req -x509 " + key + " -nodes -days 1 -subj /CN=" + ca + " -keyout " + ca + ".key -out " + ca + ".pem");
    run("req " + key +
        " -nodes -subj /CN=server -addext subjectAltName=DNS:localhost -keyout server.key "
        "-out server.csr");
    run("x509 -req -days 1 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy "
        "-out server.pem");
  }
  std::string file(const std::string& name) const { return scratch / name; }
  Scratch scratch;
};

/// Nothing; or why rediss:// cannot be tried here.
inline std::string obstacle_to_tls() {
  if (server_program().empty()) return "needs redis-server";
  try {
    store(from_url("rediss://localhost"), "jobs");
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

/// On a port beside its plain one.
class Secured {
 public:
  explicit Secured(const Certificates& made)
      : server({"tls-cert-file " + made.file("server.pem"), "tls-key-file " + made.file("server.key"),
                "tls-ca-cert-file " + made.file("ca.pem"), "tls-auth-clients no"}) {
    const auto answer = server.ask({"CONFIG", "SET", "tls-port", port()});
    if (answer != "OK") throw std::runtime_error("no TLS: " + answer);
  }
  std::string port() const { return std::to_string(server.port() + 10'000); }  // which it would use in a cluster
  Server server;
};

}  // namespace tenure::redis::test
