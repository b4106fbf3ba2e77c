// SPDX-License-Identifier: Apache-2.0
// A thread for each connection, and the one that lets them in. A client that sends a byte now and then keeps none for
// ever.
#include <tenure/http_server.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <mutex>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <tenure/kit/poll_all.hpp>
#include <tenure/kit/start_thread.hpp>

#include "connection.hpp"
#include "protocol.hpp"
#include "socket.hpp"

namespace tenure::http {
namespace {

ServerOptions checked(ServerOptions options) {
  if (options.connections == 0) throw std::invalid_argument("ServerOptions::connections: it must be at least 1");
  if (options.patience <= Clock::Duration::zero() || options.patience > std::chrono::minutes(1))
    throw std::invalid_argument("ServerOptions::patience: it must be more than 0, and at most a minute");
  return options;
}

/// Whoever asks must not take the descriptors that a leader needs to reach its store again. The kernel gives the lowest
/// number that is free.
bool takes_the_reserve(int fd) {
  constexpr rlim_t reserve = 16;
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd) + reserve >= limit.rlim_cur;
}

}  // namespace

class TENURE_HTTP_NO_EXPORT Server::Impl {
 public:
  Impl(const Site& site, ServerOptions options)
      : options_(checked(std::move(options))),
        listener_(listen_at(options_.address)),
        address_(address_of(listener_.get())),
        wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
        protocol_(site.answerer(), host_filter(options_.hosts), streams_.get_token()),
        acceptor_(start_thread("tenure-accept", [this] { accept_all(); })) {}

  ~Impl() { stop(); }

  bool forked() const { return ::getpid() != made_by_; }  ///< Then our threads are the parent's.

  void stop() {
    if (forked()) return;
    const std::lock_guard one(stopping_);
    if (!acceptor_.joinable()) return;
    streams_.request_stop();
    ::eventfd_write(wakes_.get(), 1);
    acceptor_.join();
    ::shutdown(listener_.get(), SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      for (auto& client : clients_)
        if (!client.done && client.connection->may_be_cut()) client.connection->cut();
    }
    for (auto& client : clients_) client.thread.join();
    clients_.clear();
  }

  const std::string& address() const { return address_; }

 private:
  struct Client {
    std::unique_ptr<Connection> connection;  ///< Gone when it is done.
    bool cut{}, done{};
    std::thread thread;
  };

  void accept_all();
  void read_wakes() const {
    ::eventfd_t ignored = 0;
    ::eventfd_read(wakes_.get(), &ignored);
  }
  void admit(int fd);
  void reap();
  bool make_room();
  void serve(Client& self);

  const ServerOptions options_;
  const pid_t made_by_{::getpid()};
  const Descriptor listener_;
  const std::string address_;
  const Descriptor wakes_;
  std::stop_source streams_;
  Protocol protocol_;
  std::mutex stopping_, mutex_;  ///< mutex_ guards what is in clients_; the list is the acceptor's.
  std::list<Client> clients_;    ///< The oldest one first.
  std::thread acceptor_;
};

void Server::Impl::accept_all() {
  while (!streams_.stop_requested()) {
    // Whoever was cut ends soon. Until then newcomers wait in the kernel's queue.
    const bool full = clients_.size() >= 2 * options_.connections;
    pollfd waits[2]{{wakes_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    poll_all(std::span(waits).first(full ? 1 : 2), -1);
    read_wakes();
    if (full) {
      reap();
      continue;
    }
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && takes_the_reserve(fd))
      ::close(fd);
    else if (fd >= 0)
      admit(fd);
    else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      ready(wakes_.get(), POLLIN, boot_clock().now() + std::chrono::milliseconds(100));  // No descriptor is left.
    reap();
  }
}

void Server::Impl::admit(int fd) {
  auto connection = std::make_unique<Connection>(fd, options_.patience);
  // A stream whose reader is gone without a word ends, too.
  const auto ms = static_cast<unsigned>(std::chrono::ceil<std::chrono::milliseconds>(options_.patience).count());
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  // An answer takes moments, unless all are streams.
  for (const auto until = boot_clock().now() + options_.patience; !make_room(); reap()) {
    if (streams_.stop_requested() || boot_clock().now() >= until) return;
    ready(wakes_.get(), POLLIN, boot_clock().now() + std::chrono::milliseconds(5));
    read_wakes();
  }
  auto& client = clients_.emplace_back();
  client.connection = std::move(connection);
  try {
    client.thread = start_thread("tenure-http", [this, &client] { serve(client); });
  } catch (const std::system_error&) {
    clients_.pop_back();
  }
}

/// Joins the threads that have ended.
void Server::Impl::reap() {
  clients_.remove_if([this](Client& client) {
    {
      const std::lock_guard lock(mutex_);
      if (!client.done) return false;
    }
    client.thread.join();
    return true;
  });
}

/// For one more. The oldest that we need not answer gives way; its thread ends soon.
bool Server::Impl::make_room() {
  const std::lock_guard lock(mutex_);
  const auto counts = [](const Client& client) { return !client.done && !client.cut; };
  if (static_cast<std::size_t>(std::count_if(clients_.begin(), clients_.end(), counts)) < options_.connections)
    return true;
  const auto oldest = std::find_if(clients_.begin(), clients_.end(), [&](const Client& client) {
    return counts(client) && client.connection->may_be_cut();
  });
  if (oldest == clients_.end()) return false;
  oldest->connection->cut();
  oldest->cut = true;
  return true;
}

void Server::Impl::serve(Client& self) {
  protocol_.serve(*self.connection);
  if (!streams_.stop_requested()) self.connection->finish();
  {
    const std::lock_guard lock(mutex_);
    self.connection.reset();
    self.done = true;
  }
  ::eventfd_write(wakes_.get(), 1);
}

Server::Server(const Site& site, ServerOptions options) : impl_(std::make_unique<Impl>(site, std::move(options))) {}

Server::~Server() {
  if (impl_->forked()) (void)impl_.release();  // NOLINT(bugprone-unused-return-value): left as it is
}

void Server::stop() { impl_->stop(); }

std::string Server::address() const { return impl_->address(); }

}  // namespace tenure::http
