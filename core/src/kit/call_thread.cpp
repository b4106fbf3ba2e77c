// SPDX-License-Identifier: Apache-2.0
// Two threads meet in CallThreadState: the call thread, and one caller, which leaves at its limit whatever the call
// thread is doing.
//
// A request is asked, then begun, then done:
// - The call thread begins it once the connection stands. If the connection cannot be made, it is done with that error.
// - Its caller takes it back if the limit passes before it is begun. Then it never runs.
// - If the limit passes later, the caller leaves. The body runs on, and nobody reads its answer.
//
// The call thread goes through these states (Doing), for one request after the other:
//
//   nothing -> connecting (does it stand?) -> asking -> nothing
//                   | no                        ^
//                   v                           |
//                pausing (not_before) -> connecting (connect())
//
//   state       what ends it
//   nothing     a request, or the end
//   pausing     the time, the end, or that the request was taken back
//   connecting  connect() returns. A caller that waits shuts down the socket of a step that outlasts `patience`.
//   asking      The body returns. Its caller's limit ends Socket::wait() alone, since an answer that is late costs no
//               connection. If the next caller waits its whole limit too, it shuts the socket down.
//
// An exchange is its caller's own. If the connection does not stand, the caller first makes a request with an empty
// body. Then the call thread does nothing, and the caller runs the body: it cannot be late, since it sleeps only where
// its limit ends the sleep. What it leaves on the connection is the next exchange's to settle. If that waits its whole
// limit for it too, it shuts the socket down.
//
// Who may change what:
// - `connection` belongs to the call thread, and so does the body of a request that was begun. No lock is held there.
//   While `doing` is nothing it belongs to the caller. Nobody else can ask, so that it stays so.
// - The rest is changed under `mutex`. `asked` is set and taken back by the caller, and taken by the call thread.
//   `caller` is set by await(), `ended` by who waits no longer. What tells of the connection is the call thread's.
// - `socket` is a duplicate. The call thread replaces it between two polls; under the lock anyone may shut it down. An
//   exchange polls it too.
//
// Why no wake-up is lost:
// - A Waker remembers a wake() until a wait() has ended by it. Each thread looks under `mutex` at all that it waits for
//   before it sleeps: the call thread at `asked` and `quit`, the caller at `done`, its limit and the step's time.
// - Who changes one of these wakes the other thread afterwards. The call thread finds the caller in `caller`. If that
//   is empty, nobody sleeps there.
// - Socket::wait() polls end_event, which stays readable until the next question begins. So an end() that comes just
//   before the poll ends it too.
// - A request that is taken back wakes nobody: the call thread then sleeps until `not_before` at most.
#include <tenure/kit/call_thread.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <tenure/kit/descriptor.hpp>
#include <tenure/kit/jitter.hpp>
#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/poll_all.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/wait.hpp>
#include <utility>

#include "kit/in_ms.hpp"
#include "kit/mutex.hpp"
#include "kit/no_broken_pipe.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

using Duration = Clock::Duration;
using std::chrono::milliseconds;

/// How long a body may take to return after it was asked to. Twice this is less than the time after which core calls a
/// call wedged.
constexpr auto grace = milliseconds(20);
constexpr int most_patience = 4;  ///< A multiple of the first patience.
constexpr Duration first_pause = milliseconds(20), longest_pause = std::chrono::seconds(1);

/// What the user's own function threw tells nothing of the network. REQUIRES: an exception is being handled.
Error thrown(const std::string& what) {
  try {
    throw;
  } catch (const NoCredentials& e) {
    return {Fault::forbidden, e.what()};
  } catch (...) {
    return {Fault::unreachable, what + what_was_thrown()};
  }
}

Limit soon() { return {boot_clock(), boot_clock().now() + grace, {}}; }

}  // namespace

struct CallThreadState {
  enum class Doing { nothing, pausing, connecting, asking };
  struct Request {
    std::function<void(CallThread::Socket&)> body;
    Duration call{};  ///< How long its caller waits.
    bool begun{}, done{};
    std::optional<Error> error{};
  };

  CallThreadState(std::shared_ptr<CallThread::Connection> made, Duration first)
      : connection(std::move(made)), first_patience(first) {
    if (!connection) throw std::invalid_argument("CallThread: the connection is missing");
  }

  const std::shared_ptr<CallThread::Connection> connection;
  const Duration first_patience;
  Mutex mutex;
  const std::unique_ptr<Waker> thread{boot_clock().make_waker()};
  const Descriptor end_event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"};
  std::shared_ptr<Request> asked TENURE_GUARDED_BY(mutex){};  ///< It is not begun.
  Waker* caller TENURE_GUARDED_BY(mutex){};                   ///< Who waits, in await().
  Doing doing TENURE_GUARDED_BY(mutex){};
  bool ended TENURE_GUARDED_BY(mutex){};    ///< The body that runs is to return.
  bool waiting TENURE_GUARDED_BY(mutex){};  ///< In Socket::wait().
  bool quit TENURE_GUARDED_BY(mutex){}, gone TENURE_GUARDED_BY(mutex){};
  Descriptor socket TENURE_GUARDED_BY(mutex);

  // These are about the connection that is being made, or was last.
  std::string with TENURE_GUARDED_BY(mutex), step_is TENURE_GUARDED_BY(mutex);
  Clock::Time connect_began TENURE_GUARDED_BY(mutex){}, step_began TENURE_GUARDED_BY(mutex){};
  bool cut_short TENURE_GUARDED_BY(mutex){}, out_of_descriptors TENURE_GUARDED_BY(mutex){};  ///< This step.
  bool ran_out TENURE_GUARDED_BY(mutex){};                                                   ///< Any step.
  std::string took_too_long TENURE_GUARDED_BY(mutex);  ///< The step that was cut short last, and what is said of it.
  Duration patience{first_patience}, round_trip TENURE_GUARDED_BY(mutex){};
  int failures TENURE_GUARDED_BY(mutex){};  ///< In a row.
  Error failure TENURE_GUARDED_BY(mutex){};
  Clock::Time not_before TENURE_GUARDED_BY(mutex){};

  // ---- for what runs on the thread ----

  bool step(std::string whom, std::string what, int descriptor) {
    Descriptor copy(descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    const Lock lock(mutex);
    end_step();
    with = std::move(whom);
    step_is = std::move(what);
    step_began = boot_clock().now();
    socket = std::move(copy);
    cut_short = false;
    out_of_descriptors = !socket && descriptor >= 0;
    if (caller) caller->wake();  // It must watch the new step's time.
    return !quit && !out_of_descriptors;
  }

  void end_step() TENURE_HOLDS(mutex) { ran_out = ran_out || boot_clock().now() - step_began >= patience; }

  bool wait_ready_for(short events) {
    const Lock lock(mutex);
    if (ended) return false;
    waiting = true;
    const int watched = socket.get();
    mutex.unlock();
    poll_all({{end_event.get(), POLLIN, 0}, {watched, events, 0}});
    mutex.lock();
    waiting = false;
    return !ended;
  }

  // ---- the thread ----

  void run() {
    const Lock lock(mutex);
    while (!quit) {
      if (asked)
        serve();
      else
        sleep(Clock::Time::max());
    }
    gone = true;
    if (caller) caller->wake();
  }

  void sleep(Clock::Time until) TENURE_HOLDS(mutex) {
    mutex.unlock();
    thread->wait_until(until);
    mutex.lock();
  }

  void serve() TENURE_HOLDS(mutex) {
    doing = Doing::connecting;
    connect_began = step_began = boot_clock().now();
    mutex.unlock();
    const bool stood = stands();
    mutex.lock();
    if ((stood || connect()) && asked && !quit) ask();
    doing = Doing::nothing;
  }

  /// A connection that throws is made anew, and if that fails too, its error says why.
  bool stands() const {
    try {
      return connection->stands();
    } catch (...) {
      return false;
    }
  }

  bool connect() TENURE_HOLDS(mutex) {
    socket.reset();
    doing = Doing::pausing;
    while (asked && !quit && boot_clock().now() < not_before) sleep(not_before);
    if (!asked || quit) return false;
    doing = Doing::connecting;
    connect_began = step_began = boot_clock().now();
    cut_short = out_of_descriptors = ran_out = false;
    took_too_long.clear();
    mutex.unlock();
    auto error = attempt();
    mutex.lock();
    end_step();
    if (error) {
      socket.reset();
      failed(std::move(*error));
    } else {
      failures = 0;
      patience = first_patience;
    }
    return !error;
  }

  std::optional<Error> attempt() {
    try {
      CallThread::Attempt seen(*this);
      return connection->connect(seen);
    } catch (...) {
      return thrown("connecting failed: ");
    }
  }

  void failed(Error error) TENURE_HOLDS(mutex) {
    if (out_of_descriptors)
      error = {Fault::unreachable, with + ": no descriptor is left to watch the connection with: raise ulimit -n"};
    else if (!took_too_long.empty() && error.fault == Fault::unreachable)  // We ended it ourselves.
      error = {Fault::timed_out, took_too_long};
    if (ran_out) patience = std::min(patience * 2, first_patience * most_patience);
    const auto most = std::min(longest_pause, asked ? asked->call : longest_pause);
    const auto pause = std::min(first_pause * (1 << std::min(failures, 10)), most);
    ++failures;
    not_before = boot_clock().now() + jittered(pause);
    failure = std::move(error);
    if (!asked) return;
    asked->error = failure;
    finish(std::exchange(asked, nullptr));
  }

  void ask() TENURE_HOLDS(mutex) {
    const auto request = std::exchange(asked, nullptr);
    request->begun = true;
    doing = Doing::asking;
    ended = false;
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(end_event.get(), &count, sizeof count);
    mutex.unlock();
    auto error = answered(*request);
    mutex.lock();
    request->error = std::move(error);
    finish(request);
  }

  std::optional<Error> answered(Request& request) {
    std::optional<Error> error;
    try {
      CallThread::Socket seen(*this);
      request.body(seen);
    } catch (...) {
      error = threw();
    }
    request.body = nullptr;  // Its captures are gone before the caller wakes.
    return error;
  }

  void finish(const std::shared_ptr<Request>& request) const TENURE_HOLDS(mutex) {
    request->done = true;
    if (caller) caller->wake();
  }

  // ---- an exchange, on the caller's thread ----

  std::optional<Error> exchange(const std::function<void(Exchange&)>& body, Waker& waker, Waker& real,
                                const Limit& limit) {
    const NoBrokenPipe none;
    Exchange seen(*this, waker, real, limit);
    if (limit.passed()) return nothing_asked();
    try {
      if (idle() && !connection->settle(seen)) return unsettled(seen, limit);
      if (!idle() || !stands()) {
        if (auto error = call([](auto&) {}, waker, real, limit)) return error;
        if (!connection->settle(seen)) return unsettled(seen, limit);  // It was not, if the thread was not idle.
      }
      body(seen);
      return std::nullopt;
    } catch (...) {
      return threw();
    }
  }

  bool idle() {
    const Lock lock(mutex);
    return doing == Doing::nothing;
  }

  /// A waker of another clock watches no socket, so the call thread does.
  void wait_ready_here(short events, Waker& waker, Waker& real, const Limit& limit) {
    const int watched = [this] {
      const Lock lock(mutex);
      return socket.get();
    }();
    if (&limit.clock == &boot_clock())
      wait_ready(real, limit, watched, events);
    else
      call([this, events](auto&) { wait_ready_for(events); }, waker, real, limit);
  }

  Error unsettled(const Exchange& seen, const Limit& limit) {
    const Lock lock(mutex);
    return end_question(seen.call_, limit);
  }

  // ---- the caller of a request ----

  std::optional<Error> call(std::function<void(CallThread::Socket&)> body, Waker& waker, Waker& real,
                            const Limit& limit) {
    const auto request = std::make_shared<Request>();
    request->body = std::move(body);
    request->call = limit.by - limit.clock.now();
    if (limit.passed()) return nothing_asked();
    {
      const Lock lock(mutex);
      asked = request;
    }
    thread->wake();  // Without the lock, which the call thread takes at once: it would wake only to wait again.
    const Lock lock(mutex);
    await(request->done, waker, limit);
    if (request->done) return request->error;
    if (!request->begun) return not_begun(*request, limit);
    end();
    if (waiting) await(request->done, real, soon());
    return request->done ? request->error : Error{Fault::timed_out, no_answer(request->call)};
  }

  /// Waits until `done` or the limit, and ends a step that takes too long. The lock is held, but not while it sleeps.
  void await(const bool& done, Waker& waker, const Limit& limit) TENURE_HOLDS(mutex) {
    caller = &waker;
    while (!done && !limit.passed()) {
      auto by = limit.by;
      if (doing == Doing::connecting && socket && !cut_short) {
        const auto left = step_began + patience - boot_clock().now();
        if (left <= Duration::zero())
          cut_step();
        else if (left < by - limit.clock.now())
          by = limit.clock.now() + left;
      }
      mutex.unlock();
      wait(waker, {limit.clock, by, limit.stop});
      mutex.lock();
    }
    caller = nullptr;
  }

  /// Whether the thread is gone soon.
  bool quits(Waker& real) {
    const Lock lock(mutex);
    quit = true;
    end();
    cut();
    thread->wake();
    await(gone, real, soon());
    return gone;
  }

  void end() TENURE_HOLDS(mutex) {
    ended = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_event.get(), &one, sizeof one);
  }

  void cut_step() TENURE_HOLDS(mutex) {
    cut_short = true;
    took_too_long = with + ": " + step_is + " took longer than " + in_ms(patience);
    cut();
  }

  void cut() const TENURE_HOLDS(mutex) {
    if (socket) ::shutdown(socket.get(), SHUT_RDWR);
  }

  // ---- messages ----

  Error not_begun(const Request& request, const Limit& limit) TENURE_HOLDS(mutex) {
    asked.reset();
    if (doing == Doing::asking) return end_question(request.call, limit);
    if (doing == Doing::connecting) return {Fault::timed_out, still_connecting(request.call)};
    return failures > 0 ? failure : nothing_asked();
  }

  static Error threw() { return thrown("a call of the client library threw: "); }

  static Error nothing_asked() { return {Fault::timed_out, "the limit passed before anything was asked"}; }

  /// Two have waited their whole limit for its answer, unless this one was stopped.
  Error end_question(Duration call, const Limit& limit) const TENURE_HOLDS(mutex) {
    if (limit.stop.stop_requested()) return {Fault::timed_out, no_answer(call)};
    cut();
    return {Fault::timed_out, no_answer(call) + " (nor to the question before it: the connection is ended)"};
  }

  std::string still_connecting(Duration call) const TENURE_HOLDS(mutex) {
    auto text = with + ": still connecting after " + in_ms(boot_clock().now() - connect_began) + " (" + step_is +
                "); this call had " + in_ms(call) +
                ", the next waits on. If this stays so, the server is out of reach, or too far away for this "
                "Timing::call: raise it, or take a preset with a longer term";
    if (failures > 0) text += ". The attempt before: " + failure.message;
    return text;
  }

  std::string no_answer(Duration call) const TENURE_HOLDS(mutex) {
    auto text = with + ": no answer within " + in_ms(call);
    if (round_trip > call / 4)
      return text + ", where a round trip took " + in_ms(round_trip) +
             ": raise Timing::call, or take a preset with a longer term";
    text += "; the server is slow or hangs, or the network is cut";
    if (round_trip == Duration::zero()) return text;
    return text + " (a round trip took " + in_ms(round_trip) + " when we connected)";
  }
};

bool CallThread::Attempt::step(std::string with, std::string what, int descriptor) {
  return state_.step(std::move(with), std::move(what), descriptor);
}
Clock::Duration CallThread::Attempt::patience() const { return state_.patience; }
void CallThread::Attempt::round_trip(Clock::Duration measured) {
  const Lock lock(state_.mutex);
  state_.round_trip = measured;
}
bool CallThread::Socket::wait() { return state_.wait_ready_for(POLLIN); }
Error Exchange::no_answer() const {
  const Lock lock(state_.mutex);
  return {Fault::timed_out, state_.no_answer(call_)};
}
void Exchange::wait(short events) const { state_.wait_ready_here(events, waker_, real_waker_, limit_); }

CallThread::CallThread(std::shared_ptr<Connection> connection, Clock::Duration patience)
    : state_(std::make_shared<CallThreadState>(std::move(connection), patience)),
      real_waker_(boot_clock().make_waker()),
      made_by_(::getpid()),
      thread_(start_thread("tenure call", [state = state_] { state->run(); })) {}

CallThread::~CallThread() {
  if (forked()) {  // A child has no such thread.
    new std::thread(std::move(thread_));
    return;
  }
  if (state_->quits(*real_waker_)) {
    thread_.join();
  } else {
    leave_behind(std::move(thread_));
  }
}

bool CallThread::forked() const { return ::getpid() != made_by_; }

/// A forked child is refused before any lock, which may have been held at the fork. Its descriptors are the parent's.
std::optional<Error> CallThread::call(std::function<void(Socket&)> body, const Limit& limit) {
  if (forked()) return forked_child("the store");
  const auto own = &limit.clock == &boot_clock() ? nullptr : limit.clock.make_waker();
  return state_->call(std::move(body), own ? *own : *real_waker_, *real_waker_, limit);
}

std::optional<Error> CallThread::exchange_by(const std::function<void(Exchange&)>& body, const Limit& limit) {
  if (forked()) return forked_child("the store");
  const auto own = &limit.clock == &boot_clock() ? nullptr : limit.clock.make_waker();
  return state_->exchange(body, own ? *own : *real_waker_, *real_waker_, limit);
}

void CallThread::wait_out(const Limit& limit) {
  if (forked() || &limit.clock != &boot_clock()) return tenure::wait_out(limit);
  while (!limit.passed()) wait(*real_waker_, limit);
}

}  // namespace tenure
