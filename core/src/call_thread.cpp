// SPDX-License-Identifier: Apache-2.0
#include <tenure/call_thread.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <tenure/wait.hpp>

#include "thread.hpp"

namespace tenure {
namespace {

/// From being told to end until it is taken to hang. Twice this is less than what core calls wedged.
constexpr auto grace = std::chrono::milliseconds(20);

Limit soon() { return {boot_clock(), boot_clock().now() + grace, {}}; }

}  // namespace

struct CallThreadState {
  std::mutex mutex;
  std::condition_variable given;                  ///< Something to run, or to quit.
  std::function<void(CallThread::Socket&)> body;  ///< Waits for the thread.
  bool running{};                                 ///< From being given until it has returned.
  bool ended{};                                   ///< What runs was told to return.
  bool waiting{};                                 ///< In Socket::wait().
  bool quit{};
  int socket{-1};  ///< Ours to close.
  Waker* caller{};
  const int end_event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  CallThreadState() {
    if (end_event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~CallThreadState() {
    use(-1);
    ::close(end_event);
  }

  bool use(int descriptor) {
    const int copy = descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    const std::lock_guard lock(mutex);
    if (socket >= 0) ::close(socket);
    socket = copy;
    return !ended && (copy >= 0 || descriptor < 0);
  }

  void cut() const {
    if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
  }

  void end() {
    ended = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_event, &one, sizeof one);
    if (!waiting) cut();
  }

  void begin() {
    ended = false;
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(end_event, &count, sizeof count);
  }

  bool wait_readable() {
    std::unique_lock lock(mutex);
    if (ended) return false;
    waiting = true;
    pollfd fds[2] = {{end_event, POLLIN, 0}, {socket, POLLIN, 0}};
    lock.unlock();
    while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    lock.lock();
    waiting = false;
    return !ended;
  }

  void run() {
    CallThread::Socket seen(*this);
    std::unique_lock lock(mutex);
    for (;;) {
      given.wait(lock, [this] { return body || quit; });
      if (quit) return;
      {
        const auto now = std::exchange(body, nullptr);
        lock.unlock();
        now(seen);
      }  // What it captured is gone before its caller is told.
      lock.lock();
      running = false;
      if (caller) caller->wake();
    }
  }

  /// Whether nothing runs, by the limit. The lock is held but for the sleep.
  bool await_idle(std::unique_lock<std::mutex>& lock, Waker& waker, const Limit& limit) {
    caller = &waker;
    while (running && !limit.passed()) {
      lock.unlock();
      wait(waker, limit);
      lock.lock();
    }
    caller = nullptr;
    return !running;
  }
};

bool CallThread::Socket::use(int descriptor) { return state_.use(descriptor); }
bool CallThread::Socket::wait() { return state_.wait_readable(); }

CallThread::CallThread()
    : state_(std::make_shared<CallThreadState>()),
      real_waker_(boot_clock().make_waker()),
      thread_(start_thread("tenure call", [state = state_] { state->run(); })) {}

CallThread::~CallThread() {
  auto& state = *state_;
  std::unique_lock lock(state.mutex);
  state.quit = true;
  state.end();
  state.cut();
  state.given.notify_one();
  const bool returned = state.await_idle(lock, *real_waker_, soon());
  lock.unlock();
  if (returned) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

Waker& CallThread::waker_of(Clock& clock) {
  if (clock_ != &clock) waker_ = clock.make_waker();
  clock_ = &clock;
  return *waker_;
}

bool CallThread::call(std::function<void(Socket&)> body, const Limit& limit) {
  auto& state = *state_;
  auto& waker = waker_of(limit.clock);
  std::unique_lock lock(state.mutex);
  if (!state.await_idle(lock, waker, limit)) state.cut();  // Its connect is over, and it talks on.
  if (state.running || limit.passed()) return false;
  state.begin();
  state.body = std::move(body);
  state.running = true;
  state.given.notify_one();
  if (state.await_idle(lock, waker, limit)) return true;

  state.end();
  if (!state.waiting && state.socket < 0) return false;
  if (state.await_idle(lock, *real_waker_, soon())) return true;
  state.cut();
  return state.await_idle(lock, *real_waker_, soon());
}

}  // namespace tenure
