// SPDX-License-Identifier: Apache-2.0
// The threads of the relay, and how it finds the process behind a connection.
#include "relay.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
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

/// The inode of the socket from one loopback port to another, by the kernel's table.
std::string inode_of(int from, int to) {
  const auto port_in = [](const std::string& address) {
    const auto colon = address.find(':');
    return colon == address.npos ? -1 : std::stoi(address.substr(colon + 1), nullptr, 16);
  };
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string n, local, remote, skipped, inode;
    fields >> n >> local >> remote;
    for (int i = 0; i < 6; ++i) fields >> skipped;
    fields >> inode;
    if (port_in(local) == from && port_in(remote) == to && inode != "0") return inode;
  }
  return {};
}

/// The process that connected from this port; 0 if it cannot be found.
pid_t process_at(int from, int to) {
  namespace fs = std::filesystem;
  const auto inode = inode_of(from, to);
  if (inode.empty()) return 0;
  const auto wanted = "socket:[" + inode + "]";
  std::error_code gone;  // processes and descriptors go while we look
  for (const auto& process : fs::directory_iterator("/proc", gone)) {
    const auto pid = std::strtol(process.path().filename().c_str(), nullptr, 10);
    if (pid == 0 || pid == ::getpid()) continue;
    fs::directory_iterator fd(process.path() / "fd", gone);
    for (; !gone && fd != fs::directory_iterator(); fd.increment(gone))
      if (std::error_code closed; fs::read_symlink(fd->path(), closed) == wanted) return static_cast<pid_t>(pid);
  }
  return 0;
}

bool send_all(int fd, const std::string& bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// What has come; nothing at the end of the stream, or if it broke.
std::string receive(int fd) {
  char buffer[65536];
  const auto got = ::read(fd, buffer, sizeof buffer);
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

/// Big-endian, as Kafka writes it.
std::size_t number_in(const std::string& bytes, std::size_t at, std::size_t size) {
  std::size_t out = 0;
  for (const auto end = at + size; at < end; ++at) out = out << 8 | static_cast<unsigned char>(bytes.at(at));
  return out;
}

std::string address_in_kafka(int port) {
  return std::string("127.0.0.1") + '\0' + '\0' + static_cast<char>(port >> 8) + static_cast<char>(port & 0xff);
}

/// The first whole message, taken from the bytes.
std::optional<std::string> take_message(std::string& bytes) {
  if (bytes.size() < 4 || bytes.size() - 4 < number_in(bytes, 0, 4)) return std::nullopt;
  auto out = bytes.substr(0, 4 + number_in(bytes, 0, 4));
  bytes.erase(0, out.size());
  return out;
}

/// Where the first partition's error stands in an answer to an OffsetCommit. From version 8 on lengths are varints, and
/// of one byte here.
std::size_t error_of_commit(const std::string& bytes, int version) {
  const bool compact = version >= 8;
  const std::size_t topics = 8 + (compact ? 1 : 0) + (version >= 3 ? 4 : 0);
  const auto name = topics + (compact ? 1 : 4);
  const auto partitions = compact ? name + number_in(bytes, name, 1) : name + 2 + number_in(bytes, name, 2);
  return partitions + (compact ? 1 : 4) + 4;
}

constexpr short readable = POLLIN | POLLHUP | POLLERR;
constexpr int at_rest_ms = 5;  // until it heeds what it is told

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
  struct Answer {
    Clock::Time due;
    std::string bytes;
  };

  int client{-1}, broker{-1};
  pid_t pid{};
  std::string header;     ///< of a request that has not come whole: its length and api key
  std::size_t to_skip{};  ///< of the request behind it
  std::deque<Answer> answers;
  Clock::Time open_at{};
  bool closed{}, opens_slowly{}, lost{};
  bool asks{};  ///< The client has sent something, and nothing was answered yet.

  // With a gate:
  struct Held {
    KafkaMessage message;
    std::string bytes;
  };
  std::uint64_t number{};
  std::string request_bytes, answer_bytes;    ///< of a message that has not come whole
  std::deque<Held> to_broker, to_client;      ///< not passed yet
  std::map<std::size_t, KafkaMessage> asked;  ///< by its number on the wire, and not answered yet
  bool client_gone{};                         ///< It has closed the connection; what it sent is still to pass.

  KafkaMessage request_of(const std::string& bytes) {
    KafkaMessage out{true,  static_cast<int>(number_in(bytes, 4, 2)), static_cast<int>(number_in(bytes, 6, 2)), 0, {},
                     number};
    out.claims = out.api == offset_commit && bytes.find(";A;") != bytes.npos;  // in a record: active
    if (const auto size = number_in(bytes, 12, 2); size != 0xffff) out.client_id = bytes.substr(14, size);
    return asked[number_in(bytes, 8, 4)] = out;
  }
  KafkaMessage answer_of(const std::string& bytes) {
    const auto number_of = number_in(bytes, 4, 4);
    auto out = asked.at(number_of);
    asked.erase(number_of);
    out.request = false;
    if (out.api == heartbeat) out.error = static_cast<int>(number_in(bytes, out.version == 0 ? 8 : 12, 2));
    if (out.api == offset_commit)
      out.error = static_cast<int>(number_in(bytes, error_of_commit(bytes, out.version), 2));
    return out;
  }

  ~Connection() {
    ::close(client);
    ::close(broker);
  }

  /// The api keys of the requests that begin in these bytes.
  std::vector<int> requests_in(const std::string& bytes) {
    std::vector<int> keys;
    for (std::size_t at = 0; at < bytes.size();) {
      if (to_skip > 0) {
        const auto n = std::min(bytes.size() - at, to_skip);
        at += n, to_skip -= n;
        continue;
      }
      header += bytes[at++];
      if (header.size() < 6) continue;
      const auto length = number_in(header, 0, 4);
      keys.push_back(static_cast<int>(number_in(header, 4, 2)));
      to_skip = length >= 2 ? length - 2 : 0;
      header.clear();
    }
    return keys;
  }

  void send_due(Clock::Time now) {
    for (; !answers.empty() && answers.front().due <= now; answers.pop_front()) {
      asks = false;
      if (!send_all(client, answers.front().bytes)) closed = true;
    }
  }
};

Relay::Relay(int to, Speaks what) : Relay(to, what, nullptr) {}
Relay::Relay(int to, Gate& gate) : Relay(to, Speaks::kafka, &gate) {}

Relay::Relay(int to, Speaks what, Gate* gate) : to_(to), speaks_(what), gate_(gate) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "relay");
  port_ = ntohs(address.sin_port);
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

std::uint64_t Relay::round_trips() const {
  const std::lock_guard lock(mutex_);
  return round_trips_;
}

std::uint64_t Relay::requests(pid_t of, int api) const {
  const auto all = requests();
  const auto found = all.find({of, api});
  return found == all.end() ? 0 : found->second;
}

void Relay::delay_answers(Clock::Duration by, pid_t of) {
  const std::lock_guard lock(mutex_);
  delay_ = by;
  delayed_ = of;
}

void Relay::far_away(Clock::Duration round_trip) {
  delay_answers(round_trip);
  const std::lock_guard lock(mutex_);
  handshake_ = round_trip;
}

void Relay::slow_to_connect(Clock::Duration least, Clock::Duration most) {
  const std::lock_guard lock(mutex_);
  least_ = least, most_ = most;
}

void Relay::mute(bool on, pid_t of) {
  const std::lock_guard lock(mutex_);
  mute_ = on;
  muted_ = of;
}

void Relay::cut(bool on) {
  const std::lock_guard lock(mutex_);
  cut_ = on;
}

bool Relay::is_cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}

void Relay::lose_connections() {
  const std::lock_guard lock(mutex_);
  lose_ = true;
}

bool Relay::loses() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lose_, false);
}

bool Relay::muted(const Connection& c) const {
  const std::lock_guard lock(mutex_);
  return mute_ && (!muted_ || muted_ == c.pid);
}

void Relay::take_requests(Connection& c) {
  const auto bytes = receive(c.client);
  c.client_gone = bytes.empty();
  c.closed = c.client_gone ? c.asked.empty() : !gate_ && !send_all(c.broker, bytes);
  if (gate_) {
    c.request_bytes += bytes;
    while (auto message = take_message(c.request_bytes)) {
      c.to_broker.push_back({c.request_of(*message), std::move(*message)});
      gate_->sent(c.to_broker.back().message);
    }
  }
  const std::lock_guard lock(mutex_);
  if (!bytes.empty() && !std::exchange(c.asks, true)) ++round_trips_;
  for (const auto key : c.requests_in(bytes)) ++requests_[{c.pid, key}];
}

void Relay::take_answers(Connection& c) {
  auto bytes = receive(c.broker);
  if (bytes.empty()) c.closed = true;
  if (speaks_ == Speaks::anything) return c.answers.push_back({due_now(c), std::move(bytes)});
  c.answer_bytes += bytes;
  while (auto message = take_message(c.answer_bytes)) {
    redirect(*message);
    if (gate_)
      c.to_client.push_back({c.answer_of(*message), std::move(*message)});
    else
      c.answers.push_back({due_now(c), std::move(*message)});
  }
}

/// Of an answer that has just come.
Clock::Time Relay::due_now(const Connection& c) const {
  const std::lock_guard lock(mutex_);
  return boot_clock().now() + (!delayed_ || delayed_ == c.pid ? delay_ : Clock::Duration::zero());
}

/// In every answer that tells of a broker, its host is a text with its port right behind.
void Relay::redirect(std::string& answer) const {
  const auto broker = address_in_kafka(to_);
  for (auto at = answer.find(broker); at != answer.npos; at = answer.find(broker, at + 1))
    answer.replace(at, broker.size(), address_in_kafka(port_));
}

void Relay::pass_gate(Connection& c) {
  for (; !c.to_broker.empty() && gate_->passes(c.to_broker.front().message); c.to_broker.pop_front())
    if (!send_all(c.broker, c.to_broker.front().bytes)) c.closed = true;
  for (auto answer = c.to_client.begin(); answer != c.to_client.end();) {
    if (!gate_->passes(answer->message)) {
      ++answer;
      continue;
    }
    c.asks = false;
    if (!send_all(c.client, answer->bytes)) c.closed = true;
    answer = c.to_client.erase(answer);
  }
  c.closed = c.closed || (c.client_gone && c.asked.empty());
}

void Relay::take_connection(std::list<Connection>& all) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  const int client = ::accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
  if (client < 0) return;
  auto& c = all.emplace_back();
  c.client = client;
  c.number = ++connections_;
  c.broker = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(to_);
  if (::connect(c.broker, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) c.closed = true;
  const int on = 1;
  for (const int fd : {c.client, c.broker}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  c.pid = process_at(ntohs(peer.sin_port), port_);
  const std::lock_guard lock(mutex_);
  ++round_trips_;
  last_ = last_ < most_ ? std::min(last_ + most_ / 5, most_) : least_;
  c.open_at = boot_clock().now() + handshake_ + last_;
  c.opens_slowly = most_ > Clock::Duration::zero();
}

/// Whether something is held that may pass without anything new.
bool Relay::due_soon(const std::list<Connection>& all) {
  return std::any_of(all.begin(), all.end(), [](const Connection& c) {
    return !c.answers.empty() || !c.to_broker.empty() || !c.to_client.empty() || boot_clock().now() < c.open_at;
  });
}

void Relay::serve(std::stop_token stop) {
  std::list<Connection> all;
  std::vector<pollfd> fds;
  while (!stop.stop_requested()) {
    if (is_cut()) all.clear();
    if (loses())
      for (auto& c : all) c.lost = true;
    const bool opens = !all.empty() && all.back().opens_slowly && boot_clock().now() < all.back().open_at;
    fds.assign({{opens ? -1 : listener_, POLLIN, 0}});
    for (const auto& c : all) {
      const bool shut = c.client_gone || c.lost || muted(c) || boot_clock().now() < c.open_at;
      fds.push_back({shut ? -1 : c.client, POLLIN, 0});
      fds.push_back({c.lost ? -1 : c.broker, POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), opens || due_soon(all) ? 1 : at_rest_ms);
    std::size_t n = 1;
    for (auto& c : all) {
      if (fds[n++].revents & readable) take_requests(c);
      if (fds[n++].revents & readable) take_answers(c);
      c.send_due(boot_clock().now());
      if (gate_) pass_gate(c);
    }
    all.remove_if([](const Connection& c) { return c.closed; });
    if (fds[0].revents & POLLIN) take_connection(all);
  }
}

}  // namespace tenure::test
