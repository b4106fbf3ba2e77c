// SPDX-License-Identifier: Apache-2.0
// Starts etcd with its certificates, and ends, freezes and asks it.
#include "server.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <tenure/conditional_store.hpp>

#include "within.hpp"

namespace tenure::etcd::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tenure::test::within;

constexpr auto start_within = 30s;

bool in_path(const std::string& name) {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

std::string contents(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

/// What it prints. Throws if it fails.
std::string run(const std::string& command) {
  auto* const pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) throw std::system_error(errno, std::generic_category(), command);
  std::string out;
  char buffer[4096];
  while (const auto got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  if (::pclose(pipe) != 0) throw std::runtime_error(command + ": " + out);
  return out;
}

}  // namespace

std::string missing_server() {
  if (in_path("etcd") && in_path("etcdctl")) return {};
  return "needs etcd and etcdctl (Debian: apt install etcd-server etcd-client)";
}

void make_certificates(const fs::path& directory) {
  const auto in = "cd " + directory.string() + " && ";
  const std::string key = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";
  for (const std::string authority : {"ca", "other"})
    run(in + key + "-x509 -days 2 -subj /CN=" + authority + " -keyout " + authority + ".key -out " + authority +
        ".pem");
  for (const std::string whose : {"server", "client"}) {
    // The gateway calls etcd's own port with the server's certificate.
    std::ofstream(directory / (whose + ".ext"))
        << "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n";
    run(in + key + "-subj /CN=" + whose + " -keyout " + whose + ".key -out " + whose + ".csr");
    run(in + "openssl x509 -req -in " + whose + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " +
        whose + ".ext -out " + whose + ".pem");
  }
}

Server::Server() : Server(Plan{}) {}

Server::Server(Plan plan) : plan_(std::move(plan)) {
  for (int attempt = 0; attempt < 5; ++attempt) {  // somebody else may have taken a port meanwhile
    launch();
    if (!plan_.cluster.empty() || await()) return;
    if (log().find("address already in use") == std::string::npos) break;
    kill();
    plan_.port = {};
    plan_.peers = {};
  }
  throw std::runtime_error("etcd did not start:\n" + log());
}

Server::~Server() { kill(); }

std::string Server::log() const { return contents(scratch_ / "log"); }

Options Server::options() const {
  Options out;
  out.servers = {{"127.0.0.1", plan_.port.number()}};
  out.tls = plan_.access.tls;
  out.ca_file = plan_.access.ca_file;
  out.cert_file = plan_.access.cert_file;
  out.key_file = plan_.access.key_file;
  out.user = plan_.access.user;
  out.password = plan_.access.password;
  return out;
}

void Server::launch() {
  const auto clients = (plan_.access.tls ? "https://" : "http://") + address();
  const auto peers = "http://127.0.0.1:" + plan_.peers.text();
  const auto cluster = plan_.cluster.empty() ? plan_.name + "=" + peers : plan_.cluster;
  std::vector<std::string> words{"etcd",
                                 "--name=" + plan_.name,
                                 "--data-dir=" + (scratch_ / "data").string(),
                                 "--listen-client-urls=" + clients,
                                 "--advertise-client-urls=" + clients,
                                 "--listen-peer-urls=" + peers,
                                 "--initial-advertise-peer-urls=" + peers,
                                 "--initial-cluster=" + cluster,
                                 "--bcrypt-cost=4"};  // A login is no test of the processor.
  if (plan_.cluster.empty()) words.insert(words.end(), {"--heartbeat-interval=20", "--election-timeout=200"});
  words.insert(words.end(), plan_.options.begin(), plan_.options.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto log = (scratch_ / "log").string();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  for (const int fd : {1, 2}) ::dup2(out, fd);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

bool Server::await() {
  const auto asks = etcd::store(options(), "whether it serves");
  return eventually(
             [&] {
               if (::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
               if (pid_ < 0) return true;
               const auto read = asks->read(within(500ms));
               return read || read.error().fault == Fault::forbidden;
             },
             start_within) &&
         pid_ > 0;
}

void Server::start() {
  launch();
  if (!await()) throw std::runtime_error("etcd did not start again:\n" + log());
}

void Server::mend() {
  if (pid_ <= 0) start();
  freeze(false);
}

void Server::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

/// It has many threads, which stop one after the other.
void Server::freeze(bool on) {
  if (pid_ <= 0) return;  // -1 would reach everybody
  ::kill(pid_, on ? SIGSTOP : SIGCONT);
  if (int status = 0; on && ::waitpid(pid_, &status, WUNTRACED) == pid_ && !WIFSTOPPED(status)) pid_ = -1;
}

std::string Server::ctl(const std::string& words) const {
  const auto& a = plan_.access;
  return run("ETCDCTL_API=3 etcdctl --endpoints=" + std::string(a.tls ? "https://" : "http://") + address() +
             (a.ca_file.empty() ? "" : " --cacert=" + a.ca_file) +
             (a.cert_file.empty() ? "" : " --cert=" + a.cert_file) +
             (a.key_file.empty() ? "" : " --key=" + a.key_file) +
             (a.user.empty() ? "" : " --user=" + a.user + ":" + a.password) + " " + words);
}

Cluster::Cluster() {
  std::vector<Server::Plan> plans;
  std::string all;
  for (const std::string name : {"one", "two", "three"}) {
    plans.push_back({.name = name});
    all += (all.empty() ? "" : ",") + name + "=http://127.0.0.1:" + plans.back().peers.text();
  }
  for (auto& plan : plans) {
    plan.cluster = all;
    members_.push_back(std::make_unique<Server>(std::move(plan)));
  }
  for (auto& member : members_)
    if (!member->await()) throw std::runtime_error("a member did not start:\n" + member->log());
}

Options Cluster::options() const {
  Options out;
  for (const auto& member : members_) out.servers.push_back(member->options().servers[0]);
  return out;
}

std::size_t Cluster::leader() {
  std::size_t out = size();
  eventually([&] {
    for (std::size_t i = 0; i < size(); ++i) {
      const auto status = members_[i]->ctl("endpoint status -w fields");
      const auto field = [&](const std::string& name) {
        const auto at = status.find("\"" + name + "\" : ");
        return status.substr(at + name.size() + 5, status.find('\n', at) - at - name.size() - 5);
      };
      if (field("Leader") == field("MemberID")) out = i;
    }
    return out < size();
  });
  return out;
}

}  // namespace tenure::etcd::test
