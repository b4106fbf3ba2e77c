// SPDX-License-Identifier: Apache-2.0
// The thread that reads inotify, and the subscriptions that it wakes.
#include "watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include <tenure/kit/start_thread.hpp>

namespace tenure::file {
namespace {

// IN_MODIFY is not among them: it would wake every follower at every renewal.
constexpr std::uint32_t names =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t closing = IN_CLOSE_WRITE | IN_DONT_FOLLOW;

/// Returns nothing if no further thread can be had. The caller then polls.
std::unique_ptr<std::thread> quiet_thread(auto body) {
  try {
    return std::make_unique<std::thread>(start_thread("tenure-watch", std::move(body)));
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::weak_ptr<Watcher>& of_this_process() {
  static auto& one = *new std::weak_ptr<Watcher>;  // never destroyed, as what guards it
  return one;
}

}  // namespace

std::shared_ptr<Watcher> Watcher::shared() {
  // Whoever lets go of the last one closes descriptors, which the lock forbids. So these outlive it.
  std::shared_ptr<Watcher> before, quicker;
  const auto will_do = [](const auto& one) { return one && one->life_ == life() && one->works(); };
  {
    const auto lock = hold_off_forks();
    before = of_this_process().lock();
  }
  if (will_do(before)) return before;
  auto inotify = Descriptor::take([] { return ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK); });
  std::array<int, 2> ends{-1, -1};
  auto quit = Descriptor::take([&] { return ::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0 ? ends[0] : -1; });
  auto wake = Descriptor::take([&] { return ends[1]; });
  if (!inotify || !quit || !wake) return nullptr;
  std::shared_ptr<Watcher> made(new Watcher(std::move(inotify), std::move(quit), std::move(wake)), &Watcher::end);
  if (!made->thread_) return nullptr;
  const auto lock = hold_off_forks();
  quicker = of_this_process().lock();  // another thread
  if (will_do(quicker)) return quicker;
  of_this_process() = made;
  return made;
}

Watcher::Watcher(Descriptor inotify, Descriptor quit, Descriptor wake)
    : inotify_(std::move(inotify)), quit_(std::move(quit)), wake_(std::move(wake)) {
  thread_ = quiet_thread([this] { run(); });
}

Watcher::~Watcher() {
  if (life_ != life()) {  // the thread stayed with the parent
    static_cast<void>(thread_.release());
    return;
  }
  if (!thread_) return;
  [[maybe_unused]] const auto written = ::write(wake_.get(), "", 1);
  thread_->join();
}

/// After the program closed our descriptors, their numbers are its own, so the watcher stays and closes none. Its
/// thread may still sleep in what they meant, where nothing of ours wakes it. It needs nothing that ends with the
/// process.
void Watcher::end(Watcher* watcher) {
  if (watcher->life_ == life() && watcher->thread_ && !watcher->ours())
    watcher->thread_->detach();
  else
    delete watcher;
}

void Watcher::run() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  pollfd fds[2] = {{inotify_.get(), POLLIN, 0}, {quit_.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
    if (fds[1].revents != 0 || (fds[0].revents & ~POLLIN) != 0 || !ours()) break;
    const auto got = ::read(fds[0].fd, buffer.data(), buffer.size());
    for (auto at = buffer.data(); got > 0 && at < buffer.data() + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      dispatch(event->wd, event->mask);
      at += sizeof *event + event->len;
    }
  }
  ended_ = true;
  dispatch(-1, IN_Q_OVERFLOW);
}

void Watcher::dispatch(int watch, std::uint32_t mask) {
  const std::lock_guard lock(mutex_);
  const bool lost_some = (mask & IN_Q_OVERFLOW) != 0;
  const auto [first, last] =
      lost_some ? std::pair(subscriptions_.begin(), subscriptions_.end()) : subscriptions_.equal_range(watch);
  for (auto it = first; it != last; ++it) {
    auto& subscription = *it->second;
    if (lost_some || (mask & IN_CLOSE_WRITE) != 0) subscription.closed_ = true;
    if ((mask & IN_IGNORED) != 0) subscription.vanished_ = true;
    if (subscription.waker_ != nullptr) subscription.waker_->wake();
  }
  if ((mask & IN_IGNORED) != 0) subscriptions_.erase(watch);
}

int Subscription::add(const std::string& path, std::uint32_t mask) {
  const std::lock_guard lock(watcher_->mutex_);
  if (!watcher_->ours()) return -1;
  const int watch = ::inotify_add_watch(watcher_->inotify_.get(), path.c_str(), mask);
  if (watch >= 0) watcher_->subscriptions_.emplace(watch, this);
  return watch;
}

void Subscription::drop(int& watch) {
  const int dropped = std::exchange(watch, -1);
  if (dropped < 0) return;
  const std::lock_guard lock(watcher_->mutex_);
  auto& all = watcher_->subscriptions_;
  std::erase_if(all, [&](const auto& entry) { return entry.first == dropped && entry.second == this; });
  if (!all.contains(dropped) && watcher_->ours()) ::inotify_rm_watch(watcher_->inotify_.get(), dropped);
}

Subscription::State Subscription::watch(FileId directory, int descriptor, std::uint64_t newest) {
  if (watcher_ && !watcher_->works()) {
    leave();
    watcher_ = nullptr;
    waker_ = nullptr;  // With no watcher nobody could take it back at the end of the call.
    on_directory_ = on_newest_ = -1;
  }
  if (!watcher_) watcher_ = Watcher::shared();
  if (!watcher_) return State::unavailable;
  {
    const std::lock_guard lock(watcher_->mutex_);
    if (std::exchange(vanished_, false)) newest_ = 0, directory_ = {};
  }
  if (directory_ == directory && newest_ == newest && on_directory_ >= 0 && (newest == 0 || on_newest_ >= 0))
    return State::standing;
  const auto path = "/proc/self/fd/" + std::to_string(descriptor);
  if (directory_ != directory || on_directory_ < 0) {
    drop(on_directory_);
    on_directory_ = add(path, names);
  }
  drop(on_newest_);
  if (newest != 0) on_newest_ = add(path + '/' + std::to_string(newest), closing);
  directory_ = directory;
  newest_ = newest;
  // If the newest has gone meanwhile, the next look tells it.
  return on_directory_ < 0 || (newest != 0 && on_newest_ < 0) ? State::unavailable : State::renewed;
}

void Subscription::wake(Waker* waker) {
  if (!watcher_) return;
  const std::lock_guard lock(watcher_->mutex_);
  waker_ = waker;
}

bool Subscription::took_close() {
  if (!watcher_) return false;
  const std::lock_guard lock(watcher_->mutex_);
  return std::exchange(closed_, false);
}

void Subscription::leave() {
  if (!watcher_ || life_ != life()) return;
  drop(on_directory_);
  drop(on_newest_);
}

}  // namespace tenure::file
