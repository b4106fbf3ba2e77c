// SPDX-License-Identifier: Apache-2.0
#include <tenure/call_thread.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <system_error>
#include <utility>

#include <tenure/kit/start_thread.hpp>
#include <tenure/wait.hpp>

namespace tenure {
namespace {

/// From being told to return until it is taken to talk on, or to hang. Twice this is less than what core calls wedged.
constexpr auto grace = std::chrono::milliseconds(20);

Limit soon() { return {boot_clock(), boot_clock().now() + grace, {}}; }

/// A SIGPIPE that comes to this thread meanwhile is taken back.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_{};
};

}  // namespace

Clock::Time by_boot_clock(const Limit& limit) {
  const auto now = limit.clock.now();
  const auto left = limit.by > now ? limit.by - now : Clock::Duration::zero();
  return boot_clock().now() + std::min<Clock::Duration>(left, std::chrono::hours(24));
}

struct CallThreadState {
  using Body = std::function<void(CallThread::Socket&)>;
  enum class Busy { no, on_callers_thread, on_own_thread };

  std::mutex mutex;
  const std::unique_ptr<Waker> thread{boot_clock().make_waker()};
  Clock::Time watched_to{Clock::Time::min()};  ///< By when the thread looks again.
  Body given;                                  ///< For the thread.
  Busy busy{};
  Clock::Time end_at{};  ///< On the caller's thread: the limit, and then, once told to return, some grace later.
  bool connects{};       ///< On the caller's thread: it asked to.
  bool ended{};          ///< What runs was told to return.
  bool waiting{};        ///< In Socket::wait().
  bool quit{};
  int socket{-1};  ///< Ours to close.
  Waker* caller{};
  const int end_event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  CallThreadState() {
    if (end_event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~CallThreadState() {
    if (socket >= 0) ::close(socket);
    ::close(end_event);
  }

  // ---- for calls ----

  bool may_connect() {
    const std::lock_guard lock(mutex);
    connects = busy == Busy::on_callers_thread;
    return !connects;
  }

  bool use(int descriptor) {
    const int copy = descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    const std::lock_guard lock(mutex);
    if (socket >= 0) ::close(socket);
    socket = copy;
    return !ended && (copy >= 0 || descriptor < 0);
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

  // ---- beginnings and ends ----

  void begin(Busy where) {
    busy = where;
    ended = connects = false;
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(end_event, &count, sizeof count);
  }

  void end() {
    ended = true;
    end_at = boot_clock().now() + grace;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_event, &one, sizeof one);
    if (!waiting) cut();
  }

  void cut() const {
    if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
  }

  /// However the call ended, and before its stop means nothing any more.
  struct Idle {
    CallThreadState& state;
    ~Idle() {
      const std::lock_guard lock(state.mutex);
      state.busy = Busy::no;
    }
  };

  /// False: it is to be called again, where it may connect.
  bool run_here(std::unique_lock<std::mutex>& lock, const Body& body, const Limit& limit) {
    begin(Busy::on_callers_thread);
    end_at = by_boot_clock(limit);
    look_by(end_at);
    lock.unlock();
    {
      const NoBrokenPipe none;
      const std::stop_callback stop(limit.stop, [this] {
        const std::lock_guard ending(mutex);
        if (busy == Busy::on_callers_thread && !ended) end(), look_by(end_at);
      });
      const Idle after{*this};
      CallThread::Socket seen(*this);
      body(seen);
    }
    lock.lock();
    return !connects;
  }

  bool run_there(std::unique_lock<std::mutex>& lock, Body body, Waker& waker, Waker& real, const Limit& limit) {
    begin(Busy::on_own_thread);
    given = std::move(body);
    thread->wake();
    if (await_idle(lock, waker, limit)) return true;
    end();
    if (!waiting && socket < 0) return false;
    if (await_idle(lock, real, soon())) return true;
    cut();
    return await_idle(lock, real, soon());
  }

  /// Whether nothing runs, by the limit. The lock is held but for the sleep.
  bool await_idle(std::unique_lock<std::mutex>& lock, Waker& waker, const Limit& limit) {
    caller = &waker;
    while (busy != Busy::no && !limit.passed()) {
      lock.unlock();
      wait(waker, limit);
      lock.lock();
    }
    caller = nullptr;
    return busy == Busy::no;
  }

  // ---- the thread ----

  void run() {
    std::unique_lock lock(mutex);
    while (!quit) {
      if (given) {
        run_given(lock);
      } else {
        look_at(watch());
        lock.unlock();
        thread->wait();
        lock.lock();
      }
    }
  }

  void run_given(std::unique_lock<std::mutex>& lock) {
    {
      const auto body = std::exchange(given, nullptr);
      lock.unlock();
      CallThread::Socket seen(*this);
      body(seen);
    }  // What it captured is gone before its caller is told.
    lock.lock();
    busy = Busy::no;
    if (caller) caller->wake();
  }

  /// Its alarm is set without waking it, and left alone if it comes earlier: it looks in vain then.
  void look_by(Clock::Time at) {
    if (at < watched_to) look_at(at);
  }

  void look_at(Clock::Time at) {
    watched_to = at;
    thread->set(at);
  }

  /// Ends what runs on its caller's thread when it is time; when to look again.
  Clock::Time watch() {
    if (busy != Busy::on_callers_thread) return Clock::Time::max();
    if (boot_clock().now() < end_at) return end_at;
    if (!ended) {
      end();
      return end_at;
    }
    cut();
    return Clock::Time::max();
  }
};

bool CallThread::Socket::may_connect() { return state_.may_connect(); }
bool CallThread::Socket::use(int descriptor) { return state_.use(descriptor); }
bool CallThread::Socket::wait() { return state_.wait_readable(); }

CallThread::CallThread()
    : state_(std::make_shared<CallThreadState>()),
      real_waker_(boot_clock().make_waker()),
      made_by_(::getpid()),
      thread_(start_thread("tenure call", [state = state_] { state->run(); })) {}

CallThread::~CallThread() {
  if (::getpid() != made_by_) {  // A child has no such thread.
    new std::thread(std::move(thread_));
    return;
  }
  auto& state = *state_;
  std::unique_lock lock(state.mutex);
  state.quit = true;
  state.end();
  state.cut();
  state.thread->wake();
  const bool returned = state.await_idle(lock, *real_waker_, soon());
  lock.unlock();
  if (returned) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

bool CallThread::call(std::function<void(Socket&)> body, const Limit& limit) {
  auto& state = *state_;
  const auto own = &limit.clock == &boot_clock() ? nullptr : limit.clock.make_waker();
  auto& waker = own ? *own : *real_waker_;
  std::unique_lock lock(state.mutex);
  if (!state.await_idle(lock, waker, limit)) state.cut();  // Its connect is over, and it talks on.
  if (state.busy != CallThreadState::Busy::no || limit.passed()) return false;
  if (state.socket >= 0 && state.run_here(lock, body, limit)) return true;
  if (limit.passed()) return false;
  return state.run_there(lock, std::move(body), waker, *real_waker_, limit);
}

}  // namespace tenure
