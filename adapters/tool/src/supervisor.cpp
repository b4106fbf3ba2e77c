// SPDX-License-Identifier: Apache-2.0
// Forks the supervisor, and stands in for it if it fails.
#include "supervisor.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "notify.hpp"

namespace tenure::tool {
namespace {

struct Pair {
  int ours{-1}, theirs{-1};
};

Pair connected() {
  int both[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0)
    throw std::system_error(errno, std::generic_category(), "no sockets for the supervisor");
  return {both[0], both[1]};
}

}  // namespace

Supervisor::Supervisor(const Command& command) {
  const auto orders = connected(), witness = connected();
  const auto tool = ::getpid();
  become_subreaper();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "no process for the supervisor");
  if (pid_ == 0) {
    // If the tool dies while we are stopped, the kernel lets us go on, and we find its end of the socket closed.
    ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    if (::getppid() != tool) ::_exit(0);
    ::close(orders.ours);
    ::close(witness.ours);
    ::setpgid(0, 0);  // what the terminal sends to the tool's group is not for us
    const auto code = serve_as_supervisor(command, orders.theirs, witness.theirs, terminal_, group_);
    group_.remove();
    if (!command.notify_socket.empty()) Progress::remove(command.notify_socket);  // if the tool was killed
    ::_exit(code);
  }
  ::close(orders.theirs);
  ::close(witness.theirs);
  socket_ = orders.ours;
  witness_ = witness.ours;
}

Supervisor::~Supervisor() {
  ::close(socket_);
  ::close(witness_);
  if (pid_ > 0) {
    ::kill(pid_, SIGCONT);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  group_.remove();
}

bool Supervisor::order(const Order& order) const {
  const bool sent = send(socket_, order);
  ::kill(pid_, SIGCONT);
  return sent;
}

void Supervisor::kill_all() const {
  group_.kill();
  signal_descendants(pid_, SIGKILL);
  ::kill(pid_, SIGCONT);
}

void Supervisor::replace() {
  while (::waitpid(-1, nullptr, WNOHANG) >= 0) {  // until we have no child; its orphans become ours
    group_.kill();
    signal_descendants(::getpid(), SIGKILL);
    sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = 0;
  terminal_.give_back();  // the supervisor may not have come to it
}

}  // namespace tenure::tool
