// SPDX-License-Identifier: Apache-2.0
// Starts Redis or a Sentinel, and ends, freezes and asks it.
#include "server.hpp"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "clock_shim.hpp"

namespace tenure::redis::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string in_path(const std::string& name) {
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return {};
}

std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type == REDIS_REPLY_NIL) return "(nil)";
  if (reply.type != REDIS_REPLY_ARRAY) return {reply.str, reply.len};
  std::string out;
  for (std::size_t i = 0; i < reply.elements; ++i) out += (i ? " " : "") + text_of(*reply.element[i]);
  return out;
}

}  // namespace

std::string server_program() {
  if (const char* const set = std::getenv("TENURE_REDIS_SERVER")) return set;
  for (const auto* name : {"redis-server", "valkey-server", "redis-check-rdb"})
    if (auto found = in_path(name); !found.empty()) return found;
  return {};
}

std::string missing_server() {
  if (!server_program().empty()) return {};
  return "needs redis-server (Debian: apt install redis-tools); set TENURE_REDIS_SERVER to its path";
}

std::string unique_name(const std::string& stem) {
  return stem + "-" + std::to_string(::getpid()) + "-" + std::to_string(boot_clock().now().time_since_epoch().count());
}

Server::Server(std::vector<std::string> settings, bool sentinel)
    : program_(server_program()),
      sentinel_(sentinel),
      settings_(std::move(settings)),
      shim_(std::make_unique<tenure::test::ClockShim>(scratch_.path())) {
  for (int attempt = 0; attempt < 5; ++attempt) {  // somebody else may have taken the port meanwhile
    if (try_start()) return;
    port_ = {};
  }
  throw std::runtime_error(program_ + " did not start:\n" + log());
}

Server::~Server() { end(SIGKILL); }

std::string Server::log() const {
  std::ostringstream out;
  out << std::ifstream(scratch_ / "log").rdbuf();
  return out.str();
}

void Server::start() {
  if (!try_start()) throw std::runtime_error(program_ + " did not start again:\n" + log());
}

bool Server::try_start() {
  const auto conf = scratch_ / "conf";
  if (!sentinel_ || !fs::exists(conf)) {
    std::ofstream out(conf);
    out << "bind 127.0.0.1\nport " << port() << "\ndir " << scratch_.path().string() << "\nlogfile "
        << (scratch_ / "log").string() << "\n";
    if (!sentinel_)
      out << "unixsocket " << socket() << "\nappendonly yes\nappendfsync always\nsave \"\"\n"
          << "repl-diskless-sync-delay 0\nmaxmemory-policy noeviction\n";
    for (const auto& line : settings_) out << line << "\n";
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);  // with the processes that it forks to write files
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const auto& variable : shim_->environment()) ::putenv(::strdup(variable.c_str()));
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    ::execl(program_.c_str(), "redis-server", conf.c_str(), sentinel_ ? "--sentinel" : nullptr, nullptr);
    ::_exit(127);
  }
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  const bool tells = eventually([this] {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ < 0 || serves();
  });
  if (!tells) end(SIGKILL);
  return pid_ > 0;
}

bool Server::serves() {
  try {
    const auto answer = ask({"PING"});
    return answer == "PONG" || answer.starts_with("NOAUTH") || answer.starts_with("MASTERDOWN");
  } catch (const std::runtime_error&) {
    return false;
  }
}

void Server::end(int signal) {
  if (pid_ <= 0) return;
  ::setpgid(pid_, pid_);  // if it did not get that far
  ::kill(-pid_, signal);
  ::kill(-pid_, SIGCONT);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Server::stop() { end(SIGTERM); }
void Server::kill() { end(SIGKILL); }
void Server::freeze(bool on) {
  if (pid_ > 0) ::kill(pid_, on ? SIGSTOP : SIGCONT);  // -1 would reach everybody
}
void Server::mend() {
  if (pid_ <= 0) start();
  freeze(false);
}
void Server::step_clock(Clock::Duration by) { shim_->step(by); }

std::string Server::ask(const std::vector<std::string>& command) {
  const timeval patience{5, 0};
  const std::unique_ptr<redisContext, void (*)(redisContext*)> context(
      redisConnectWithTimeout("127.0.0.1", port(), patience), redisFree);
  if (!context || context->err) throw std::runtime_error("cannot connect to " + address());
  redisSetTimeout(context.get(), patience);
  const auto send = [&](const std::vector<std::string>& words) {
    std::vector<const char*> text;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) text.push_back(word.data()), sizes.push_back(word.size());
    const std::unique_ptr<redisReply, void (*)(void*)> reply(
        static_cast<redisReply*>(
            redisCommandArgv(context.get(), static_cast<int>(words.size()), text.data(), sizes.data())),
        freeReplyObject);
    if (!reply) throw std::runtime_error(address() + " does not answer " + words[0] + ": " + context->errstr);
    return text_of(*reply);
  };
  if (!password.empty()) send({"AUTH", password});
  return send(command);
}

long Server::calls(const std::string& command) {
  const auto stats = ask({"INFO", "commandstats"});
  const auto name = "cmdstat_" + command + ":calls=";
  const auto at = stats.find(name);
  return at == stats.npos ? 0 : std::strtol(stats.c_str() + at + name.size(), nullptr, 10);
}

std::string Server::info(const std::string& name) {
  const auto all = ask({"INFO"});
  const auto at = all.find("\n" + name + ":");
  if (at == all.npos) return {};
  const auto begin = at + name.size() + 2;
  return all.substr(begin, all.find('\r', begin) - begin);
}

/// A node that a busy machine keeps from answering for some seconds must not count as dead.
Cluster::Cluster(int masters) {
  for (int i = 0; i < masters; ++i)
    nodes_.push_back(std::make_unique<Server>(
        std::vector<std::string>{"cluster-enabled yes", "cluster-node-timeout 6000", "cluster-config-file nodes"}));
  constexpr int slots = 16384;
  for (int i = 0; i < masters; ++i) {
    std::vector<std::string> add{"CLUSTER", "ADDSLOTS"};
    for (int slot = slots * i / masters; slot < slots * (i + 1) / masters; ++slot) add.push_back(std::to_string(slot));
    nodes_[static_cast<std::size_t>(i)]->ask(add);
    if (i > 0)
      nodes_[0]->ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[static_cast<std::size_t>(i)]->port())});
  }
  await_ok();
}

/// Until each serves its slots and has a link of its own to every other one, without which a push does not get there.
void Cluster::await_ok() {
  const auto links = [](const std::string& nodes) {
    std::size_t count = 0;
    for (auto at = nodes.find(" connected"); at != nodes.npos; at = nodes.find(" connected", at + 1)) ++count;
    return nodes.find("handshake") == nodes.npos ? count : 0;
  };
  const bool formed = eventually([&] {
    for (auto& node : nodes_) {
      const auto info = node->ask({"CLUSTER", "INFO"});
      if (info.find("cluster_state:ok") == info.npos || info.find("cluster_slots_assigned:16384") == info.npos ||
          links(node->ask({"CLUSTER", "NODES"})) != nodes_.size())
        return false;
    }
    return true;
  });
  if (!formed) throw std::runtime_error("the cluster did not form:\n" + nodes_[0]->ask({"CLUSTER", "NODES"}));
}

std::string Cluster::id_of(std::size_t i) { return nodes_[i]->ask({"CLUSTER", "MYID"}); }

std::size_t Cluster::owner_of(const std::string& key) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (!nodes_[i]->ask({"EXISTS", key}).starts_with("MOVED")) return i;
  throw std::runtime_error("nobody serves " + key);
}

}  // namespace tenure::redis::test
