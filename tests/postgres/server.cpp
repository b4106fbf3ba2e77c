// SPDX-License-Identifier: Apache-2.0
// Starts PostgreSQL and PgBouncer, and runs SQL there.
#include "server.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <tenure/kit/wait.hpp>

#include "launched.hpp"
#include "scratch.hpp"

#ifdef __SANITIZE_ADDRESS__
/// libpqxx 6.4 forgets the result of a statement in the midst of which the connection broke. Where it allocates that,
/// its frames have no names, so the library is named.
/// A connection that nobody waits for may still be made while the process ends. Nobody frees what OpenSSL has allocated
/// for it by then.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:pqxx::connection_base::exec_params\n"
         "leak:pqxx::connection_base::exec_prepared\n"
         "leak:pqxx::connection_base::register_prepared\n"
         "leak:libpqxx-6\n"
         "leak:libcrypto.so\n";
}
#endif

namespace tenure::postgres::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tenure::test::output_of;
using tenure::test::read_env;

constexpr int pgbouncer_port = 6432;  // of its Unix socket; nothing listens on TCP

fs::path scratch(const fs::path& below, const char* stem) {
  auto path = (below / stem).string();
  if (!::mkdtemp(path.data())) throw std::system_error(errno, std::generic_category(), path);
  return path;
}

}  // namespace

std::string shared(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value ? value : "";
}

std::string unique_name(const std::string& stem) {
  static std::atomic<int> count{0};
  return stem + "_" + std::to_string(boot_clock().unix_ms()) + "_" + std::to_string(::getpid()) + "_" +
         std::to_string(++count);
}

pqxx::result sql(const std::string& conninfo, const std::string& statements) {
  pqxx::connection connection(conninfo);
  return pqxx::nontransaction(connection).exec(statements);
}

Options fresh_table(const std::string& conninfo, const std::string& stem) {
  Options options;
  options.conninfo = conninfo;
  options.table = unique_name(stem);
  if (const auto error = create_schema(options, within(20s))) throw std::runtime_error(error->message);
  return options;
}

Options fresh_group(const std::string& conninfo) {
  Options options;
  options.conninfo = conninfo;
  options.sessions = unique_name("sessions");
  options.leads = unique_name("leads");
  if (const auto error = create_group_schema(options, within(20s))) throw std::runtime_error(error->message);
  return options;
}

Server::Server(const How& how) {
  std::string command = "'" TENURE_LAUNCHER "' start --owner " + std::to_string(::getpid());
  for (const auto& setting : how.settings) command += " --set '" + setting + "'";
  if (how.standby_of)
    command += " --standby-of '" + how.standby_of->directory().string() + "'";
  else if (const auto like = shared("TENURE_POSTGRES_DIR"); !like.empty())
    command += " --like '" + like + "'";
  if (how.clock_shim) {
    directory_ = scratch(tenure::test::server_data(), "tenure-postgres-XXXXXX");
    ::chmod(directory_.c_str(), 0755);        // until the server has taken it
    std::ofstream(directory_ / "temporary");  // to be removed by stop
    shim_ = std::make_unique<tenure::test::ClockShim>(directory_);
    command += " --dir '" + directory_.string() + "'";
    for (const auto& variable : shim_->environment()) command += " --env '" + variable + "'";
  }
  directory_ = output_of(command + " 2>/dev/null");
  if (directory_.empty()) throw std::runtime_error("failed: " + command);
  env_ = read_env(directory_);
}

Server::~Server() { command("stop"); }

std::string Server::password() const {
  const auto all = conninfo();
  const auto at = all.find("password=") + 9;
  return all.substr(at, all.find(' ', at) - at);
}

void Server::command(const std::string& verb) {
  const auto all = "'" TENURE_LAUNCHER "' " + verb + " '" + directory_.string() + "' >/dev/null";
  if (std::system(all.c_str()) != 0) std::fprintf(stderr, "failed: %s\n", all.c_str());
}

TlsServer::TlsServer() {
  const std::string make = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ";
  for (const std::string ca : {"ca", "other"})
    openssl("req -x509 -subj /CN=" + ca + make + ca + ".key -out " + ca + ".pem");
  openssl("req -subj /CN=server -addext subjectAltName=DNS:localhost" + make + "server.key -out server.csr");
  openssl(
      "x509 -req -days 1 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy"
      " -out server.crt");
  sql(by_socket(), "copy (values ('local all all trust'), ('hostssl all all 127.0.0.1/32 scram-sha-256')) to '" +
                       data("pg_hba.conf") + "'");
  switch_tls(true);
}

void TlsServer::switch_tls(bool on) const {
  const std::string wanted = on ? "on" : "off";
  sql(by_socket(), "alter system set ssl = " + wanted);
  sql(by_socket(), "select pg_reload_conf()");
  if (!eventually([&] { return sql(by_socket(), "show ssl")[0][0].as<std::string>() == wanted; }))
    throw std::runtime_error("the server does not switch TLS " + wanted);
}

/// As the server's user, among its files. What the server writes is read, or it would complain of a broken pipe.
void TlsServer::openssl(const std::string& arguments) const {
  sql(by_socket(), "copy (select) to program 'cat >/dev/null; openssl " + arguments + " 2>/dev/null'");
}

PgBouncer::PgBouncer(const fs::path& server_directory, int pool_size)
    : directory_(scratch(fs::temp_directory_path(), "tenure-pgbouncer-XXXXXX")) {
  auto server = read_env(server_directory);
  const auto* user = ::getpwnam(server.at("TENURE_POSTGRES_USER").c_str());
  const auto config = directory_ / "pgbouncer.ini";
  std::ofstream(config) << "[databases]\n* = " << server.at("TENURE_POSTGRES_SOCKET") << "\n[pgbouncer]\n"
                        << "pool_mode = transaction\ndefault_pool_size = " << pool_size << "\nmax_client_conn = 500\n"
                        << "auth_type = any\nlisten_addr =\nlisten_port = " << pgbouncer_port << "\n"
                        << "unix_socket_dir = " << directory_.string()
                        << "\nlogfile = " << (directory_ / "log").string() << "\n";
  if (::geteuid() == 0 && (::chown(directory_.c_str(), user->pw_uid, user->pw_gid) != 0 ||
                           ::chown(config.c_str(), user->pw_uid, user->pw_gid) != 0))
    throw std::system_error(errno, std::generic_category(), directory_);
  const auto parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");  // signals to -1 would reach everybody
  if (pid_ == 0) {
    if (::geteuid() == 0 &&
        (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0))
      ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after setuid, which clears it
    if (::getppid() != parent) ::_exit(0);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(nowhere, fd);
    ::execlp("pgbouncer", "pgbouncer", config.c_str(), nullptr);
    ::_exit(127);
  }
  const auto serves = [&] {
    try {
      return sql(conninfo(), "select 1").size() == 1;
    } catch (const pqxx::broken_connection&) {
      return false;
    }
  };
  if (!eventually(serves))
    throw std::runtime_error("pgbouncer did not start: " + output_of("cat " + (directory_ / "log").string()));
}

PgBouncer::~PgBouncer() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  fs::remove_all(directory_);
}

std::string PgBouncer::conninfo() const {
  return "host=" + directory_.string() + " port=" + std::to_string(pgbouncer_port) + " user=postgres dbname=postgres";
}

}  // namespace tenure::postgres::test
