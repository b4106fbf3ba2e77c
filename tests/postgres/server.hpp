// SPDX-License-Identifier: Apache-2.0
// Real servers for tests: the one that tests/run started, servers of a test's own, PgBouncer before them.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include <tenure/postgres.hpp>

#include "clock_shim.hpp"
#include "eventually.hpp"
#include "within.hpp"

namespace tenure::postgres::test {

using tenure::test::eventually;
using tenure::test::within;

/// TENURE_POSTGRES and its like; empty if tests/run started none.
std::string shared(const std::string& variable = "TENURE_POSTGRES");

/// Of this run and this process alone.
std::string unique_name(const std::string& stem);

/// A statement of the test's own, on a connection of its own. Throws what libpqxx throws.
pqxx::result sql(const std::string& conninfo, const std::string& statements);

/// Options for a new, empty table of that server.
Options fresh_table(const std::string& conninfo, const std::string& stem = "elections");

/// The same with the tables of groups.
Options fresh_group(const std::string& conninfo);

/// A server that nobody else uses; ends with this object, or with this process.
class Server {
 public:
  struct How {
    std::vector<std::string> settings{};  ///< NAME=VALUE
    bool clock_shim{};
    const Server* standby_of = nullptr;
  };
  explicit Server(const How& how);
  Server() : Server(How{}) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string conninfo() const { return env_.at("TENURE_POSTGRES"); }
  std::string by_socket() const { return env_.at("TENURE_POSTGRES_SOCKET"); }
  std::string password() const;
  int port() const { return std::stoi(env_.at("TENURE_POSTGRES_PORT")); }
  const std::filesystem::path& directory() const { return directory_; }
  tenure::test::ClockShim& clock() { return *shim_; }

  void restart() { command("restart"); }
  void crash() { command("crash"); }  ///< All its processes, by SIGKILL. restart() brings it back.
  void freeze() { command("freeze"); }
  void thaw() { command("thaw"); }
  void promote() { command("promote"); }

 private:
  void command(const std::string& verb);

  std::filesystem::path directory_;
  std::unique_ptr<tenure::test::ClockShim> shim_;
  std::map<std::string, std::string> env_;
};

/// A server that takes nothing but TLS by TCP. Its certificate is for localhost, by an authority of its own.
class TlsServer : public Server {
 public:
  TlsServer();
  /// The path of one of its files: of its authority's certificate, "ca.pem", and of another authority's, "other.pem".
  std::string data(const std::string& file) const { return (directory() / "data" / file).string(); }
  /// At localhost, as the certificate has it.
  std::string at_localhost(const std::string& settings) const {
    return conninfo() + " host=localhost hostaddr=127.0.0.1 " + settings;
  }
  void switch_tls(bool on) const;

 private:
  void openssl(const std::string& arguments) const;
};

/// PgBouncer in transaction mode before a server of docker/postgres, with so few sessions at the server.
class PgBouncer {
 public:
  explicit PgBouncer(const std::filesystem::path& server_directory, int pool_size = 2);
  ~PgBouncer();
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  std::string conninfo() const;

 private:
  std::filesystem::path directory_;
  pid_t pid_{-1};
};

}  // namespace tenure::postgres::test
