// SPDX-License-Identifier: Apache-2.0
#include "relay.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <fstream>
#include <list>
#include <sstream>
#include <system_error>
#include <vector>

namespace tenure::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// The process at the other end of an accepted connection, by the kernel's table of sockets.
pid_t process_at(int port) {
  std::ifstream table("/proc/net/tcp");
  std::string line, inode;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string n, local, remote, skip, found;
    fields >> n >> local >> remote;
    for (int i = 0; i < 6; ++i) fields >> skip;
    fields >> found;
    const auto colon = local.find(':');
    if (colon != local.npos && std::stoi(local.substr(colon + 1), nullptr, 16) == port && found != "0") inode = found;
  }
  if (inode.empty()) return 0;
  // Few processes are ours: ask each for its descriptors.
  FILE* found = ::popen(("find /proc/[0-9]*/fd -lname 'socket:\\[" + inode + "\\]' 2>/dev/null | head -n 1").c_str(), "r");
  char path[64] = {};
  const bool any = found && std::fgets(path, sizeof path, found);
  if (found) ::pclose(found);
  return any ? static_cast<pid_t>(std::strtol(path + 6, nullptr, 10)) : 0;
}

struct Chunk {
  Clock::Time due;
  std::string bytes;
};

}  // namespace

std::string api_name(int key) {
  static const std::map<int, std::string> names{{0, "Produce"},      {1, "Fetch"},        {3, "Metadata"},
                                                {8, "OffsetCommit"}, {9, "OffsetFetch"},  {10, "FindCoordinator"},
                                                {11, "JoinGroup"},   {12, "Heartbeat"},   {13, "LeaveGroup"},
                                                {14, "SyncGroup"},   {18, "ApiVersions"}, {19, "CreateTopics"}};
  const auto it = names.find(key);
  return it == names.end() ? "api " + std::to_string(key) : it->second;
}

struct Relay::Connection {
  int client{-1}, broker{-1};
  pid_t pid{};
  std::string parsed;          ///< the start of a request that has not come whole
  std::size_t to_skip{};
  std::deque<Chunk> answers;
  bool closed{};

  ~Connection() {
    ::close(client);
    ::close(broker);
  }
  /// Calls `request(api key)` for each request whose header has come.
  template <class F>
  void parse(const char* data, std::size_t size, F request) {
    while (size > 0) {
      if (to_skip > 0) {
        const auto n = std::min(size, to_skip);
        data += n, size -= n, to_skip -= n;
        continue;
      }
      parsed += *data++, --size;
      if (parsed.size() < 6) continue;
      const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(parsed[i]); };
      const auto length = static_cast<std::size_t>(byte(0)) << 24 | static_cast<std::size_t>(byte(1)) << 16 |
                          static_cast<std::size_t>(byte(2)) << 8 | byte(3);
      request(byte(4) << 8 | byte(5));
      to_skip = length >= 2 ? length - 2 : 0;
      parsed.clear();
    }
  }
};

Relay::Relay(int port, int to) : to_(to) {
  if (port == 0) return;
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = loopback(port);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 64) != 0)
    throw std::system_error(errno, std::generic_category(), "relay on port " + std::to_string(port));
  thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
}

Relay::~Relay() {
  thread_ = {};
  if (listener_ >= 0) ::close(listener_);
}

std::map<std::pair<pid_t, int>, std::uint64_t> Relay::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void Relay::delay_answers(Clock::Duration by, pid_t of) {
  const std::lock_guard lock(mutex_);
  delay_ = by;
  delayed_ = of;
}

void Relay::mute(bool on, pid_t of) {
  const std::lock_guard lock(mutex_);
  mute_ = on;
  muted_ = of;
}

void Relay::serve(std::stop_token stop) {
  auto& clock = boot_clock();
  std::list<Connection> all;
  while (!stop.stop_requested()) {
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    for (auto& c : all) {
      const bool muted = [&] { const std::lock_guard lock(mutex_); return mute_ && (!muted_ || muted_ == c.pid); }();
      fds.push_back({c.client, static_cast<short>(muted ? 0 : POLLIN), 0});
      fds.push_back({c.broker, static_cast<short>(muted ? 0 : POLLIN), 0});
    }
    ::poll(fds.data(), fds.size(), 1);
    std::size_t n = 1;
    char buffer[65536];
    for (auto& c : all) {
      const auto from_client = fds[n++].revents, from_broker = fds[n++].revents;
      if (from_client & (POLLIN | POLLHUP | POLLERR)) {
        const auto got = ::read(c.client, buffer, sizeof buffer);
        if (got <= 0) c.closed = true;
        if (got > 0) {
          if (::send(c.broker, buffer, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) c.closed = true;
          const std::lock_guard lock(mutex_);
          c.parse(buffer, static_cast<std::size_t>(got), [&](int key) { ++requests_[{c.pid, key}]; });
        }
      }
      if (from_broker & (POLLIN | POLLHUP | POLLERR)) {
        const auto got = ::read(c.broker, buffer, sizeof buffer);
        if (got <= 0) c.closed = true;
        const std::lock_guard lock(mutex_);
        const auto delay = !delayed_ || delayed_ == c.pid ? delay_ : Clock::Duration::zero();
        if (got > 0) c.answers.push_back({clock.now() + delay, std::string(buffer, static_cast<std::size_t>(got))});
      }
      while (!c.answers.empty() && c.answers.front().due <= clock.now()) {
        const auto& bytes = c.answers.front().bytes;
        if (::send(c.client, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) c.closed = true;
        c.answers.pop_front();
      }
    }
    all.remove_if([](const Connection& c) { return c.closed; });
    if (fds[0].revents & POLLIN) {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      const int client = ::accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
      if (client < 0) continue;
      auto& c = all.emplace_back();
      c.client = client;
      c.broker = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const auto address = loopback(to_);
      if (::connect(c.broker, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) c.closed = true;
      const int on = 1;
      for (const int fd : {c.client, c.broker}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      c.pid = process_at(ntohs(peer.sin_port));
    }
  }
}

}  // namespace tenure::test
