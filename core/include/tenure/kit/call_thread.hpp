// SPDX-License-Identifier: Apache-2.0
// For those who write a backend on a client library that may block.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/kit/exchange.hpp>
#include <tenure/limit.hpp>

namespace tenure {

struct CallThreadState;

/// One connection of a client library, and the thread that makes it. Where the library's calls take no limit, they run
/// on that thread too: call(). When the limit passes, the caller leaves, and what runs there goes on. Later calls wait
/// for it, each to its own limit. Where reads and writes need not block, exchange() runs on the caller's thread, which
/// spares two changes of threads. The answer that its limit cuts off is read away by the next exchange. Either way
/// nothing is overtaken, and an answer that is late costs no connection.
///
/// The connection is made apart from the calls: they wait for it, and it survives them. Each step of making it may take
/// `patience`. After an attempt that ran out of patience, a step may take twice as long, and at most four times; after
/// a success, `patience` again. More would heal late: a lost SYN is sent again after 1, 3 and 7 s. After a failed
/// attempt there is a pause, with jitter and no longer than a call, so that we do not notice late that an outage is
/// over. A question that outlasts its call is ended by the next call that waits its whole limit for it.
///
/// REQUIRES: there is one caller at a time. A call() shares what it captures, because it may outlive its caller.
class TENURE_EXPORT CallThread {
 public:
  /// Through this connect() reports its steps. Only the thread itself may use it.
  class TENURE_EXPORT Attempt {
   public:
    /// Begins the next step. Messages name with whom ("postgres (host:5432/db)") and what is done. `descriptor` is
    /// shut down when the step takes too long, and later to end a question. A duplicate of it is kept, so you may
    /// close it. A step without one, such as a name resolution, ends by itself. If it returns false, connect() must
    /// return at once.
    bool step(std::string with, std::string what, int descriptor = -1);
    Clock::Duration patience() const;           ///< How long a step may take.
    void round_trip(Clock::Duration measured);  ///< Reports how long one question and its answer took.

   private:
    friend struct CallThreadState;
    explicit Attempt(CallThreadState& state) : state_(state) {}
    CallThreadState& state_;
  };

  /// A backend implements this by its library's connection. One thread at a time calls it, and it may outlive them.
  class TENURE_EXPORT Connection {
   public:
    virtual ~Connection() = default;
    /// Makes the connection, so that questions may follow. An error says why not, and with whom.
    /// REQUIRES: the last step was given the connection's socket.
    virtual std::optional<Error> connect(Attempt& attempt) = 0;
    /// Whether the connection stands, as far as one can tell without a question. Called before every call.
    virtual bool stands() = 0;
    /// Reads away what is owed to earlier exchanges. Returns false if this one is over() before all has come.
    virtual bool settle(Exchange&) { return true; }
  };

  /// Lets a call wait until the other end sends something.
  class TENURE_EXPORT Socket {
   public:
    /// Sleeps until there is something to read, or the stream has ended. If false, the call must return at once.
    bool wait();

   private:
    friend struct CallThreadState;
    explicit Socket(CallThreadState& state) : state_(state) {}
    CallThreadState& state_;
  };

  explicit CallThread(std::shared_ptr<Connection> connection, Clock::Duration patience = std::chrono::seconds(2));
  ~CallThread();  ///< Ends what runs on the thread, and waits for it for 50 ms at most. Allocates nothing.
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// Runs `body` on the connection, and returns nothing once it has returned. An error says that the limit passed, and
  /// what is waited for; or that there is no connection; or that this is a forked child. The body was not begun, unless
  /// the error names a question without an answer.
  std::optional<Error> call(std::function<void(Socket&)> body, const Limit& limit);

  /// Does the same for a body that returns a Result. Returns that, or call()'s error.
  template <class F>
  auto ask(F body, const Limit& limit) {
    using Returned = std::invoke_result_t<F&, Socket&>;
    const auto answer = std::make_shared<std::optional<Returned>>();
    auto error = call([answer, run = std::move(body)](Socket& socket) mutable { answer->emplace(run(socket)); }, limit);
    return error ? Returned(std::move(*error)) : std::move(**answer);
  }

  /// Runs `body` on this thread once the connection stands, and returns what it returned, or call()'s error. SIGPIPE is
  /// blocked meanwhile. REQUIRES: `body` sleeps nowhere but in Exchange::wait().
  template <class F>
  auto exchange(F body, const Limit& limit) {
    using Returned = std::invoke_result_t<F&, Exchange&>;
    std::optional<Returned> answer;
    auto error = exchange_by([&](Exchange& exchange) { answer.emplace(body(exchange)); }, limit);
    return error ? Returned(std::move(*error)) : std::move(*answer);
  }

  void wait_out(const Limit& limit);  ///< tenure::wait_out(); with boot_clock() it needs no descriptor.

 private:
  bool forked() const;
  std::optional<Error> exchange_by(const std::function<void(Exchange&)>& body, const Limit& limit);
  const std::shared_ptr<CallThreadState> state_;
  const std::unique_ptr<Waker> real_waker_;
  const int made_by_;  ///< The process.
  std::thread thread_;
};

}  // namespace tenure
