// SPDX-License-Identifier: Apache-2.0
// Waits by epoll for descriptors and signals.
#include "wakeup.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <tenure/kit/wait.hpp>

namespace tenure::tool {
namespace {

constexpr const char* no_descriptor = "no descriptor to wait by";

void add(int all, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  if (::epoll_ctl(all, EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw std::system_error(errno, std::generic_category(), no_descriptor);
}

}  // namespace

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

Wakeup::Wakeup(const std::vector<int>& descriptors, std::initializer_list<int> signals)
    : waker_(boot_clock().make_waker()), all_(::epoll_create1(EPOLL_CLOEXEC), no_descriptor) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals)
    if (!is_ignored(signal)) sigaddset(&set, signal);
  signals_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), no_descriptor);
  add(all_.get(), signals_.get());
  for (const int descriptor : descriptors) add(all_.get(), descriptor);
}

void Wakeup::sleep_until(Clock::Time until) { wait_ready(*waker_, {boot_clock(), until, {}}, all_.get(), POLLIN); }

std::optional<int> Wakeup::signal() const {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void Wakeup::forget(int descriptor) const { ::epoll_ctl(all_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

}  // namespace tenure::tool
