// SPDX-License-Identifier: Apache-2.0
// For those who write a backend on a client library whose calls block.
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
#include <tenure/limit.hpp>

namespace tenure {

struct CallThreadState;

/// One connection of a client library, and the thread that makes and uses it. It is for libraries whose calls take no
/// limit. When a call's limit passes, the caller leaves, but what runs on the thread goes on. Later calls wait for it,
/// each to its own limit, so that nothing overtakes it.
///
/// The connection is made apart from the calls: they wait for it, and it survives them. Each step of making it may take
/// `patience`. After an attempt that ran out of patience, a step may take twice as long, and at most four times; after
/// a success, `patience` again. More would heal late: a lost SYN is sent again after 1, 3 and 7 s. After a failed
/// attempt there is a pause, with jitter and no longer than a call, so that we do not notice late that an outage is
/// over. A question that outlasts its call is ended by the next call that waits its whole limit for it.
///
/// REQUIRES: there is one caller at a time. A call shares what it captures, because it may outlive its caller.
class TENURE_EXPORT CallThread {
 public:
  /// By this connect() says how far it is. Only the thread itself may use it.
  class TENURE_EXPORT Attempt {
   public:
    /// Begins the next step. Messages name with whom ("postgres (host:5432/db)") and what is done. `descriptor` is
    /// shut down when the step takes too long, and later to end a question. A duplicate of it is kept, so you may
    /// close it. A step without one, such as a name resolution, ends by itself. If it returns false, connect() must
    /// return at once.
    bool step(std::string with, std::string what, int descriptor = -1);
    /// How long a step may take.
    Clock::Duration patience() const;
    /// Says how long one question and its answer took, for messages.
    void round_trip(Clock::Duration measured);

   private:
    friend struct CallThreadState;
    explicit Attempt(CallThreadState& state) : state_(state) {}
    CallThreadState& state_;
  };

  /// A backend implements this by its library's connection. It is called on the thread alone, and may outlive it.
  class TENURE_EXPORT Connection {
   public:
    virtual ~Connection() = default;
    /// Makes the connection, so that questions may follow. An error says why not, and with whom.
    /// REQUIRES: the last step was given the connection's socket.
    virtual std::optional<Error> connect(Attempt& attempt) = 0;
    /// Whether the connection stands, as far as one can tell without a question. Called before every call.
    virtual bool stands() = 0;
  };

  /// For calls that wait until the other end says something.
  class TENURE_EXPORT Socket {
   public:
    /// Sleeps until there is something to read, or the stream has ended. If it returns false, the call must return
    /// at once.
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

  /// As call(), for a body that returns a Result: returns that, or call()'s error.
  template <class F>
  auto ask(F body, const Limit& limit) {
    using Returned = std::invoke_result_t<F&, Socket&>;
    const auto answer = std::make_shared<std::optional<Returned>>();
    auto error = call([answer, run = std::move(body)](Socket& socket) mutable { answer->emplace(run(socket)); }, limit);
    return error ? Returned(std::move(*error)) : std::move(**answer);
  }

  /// As wait_out(). If the limit's clock is boot_clock(), it needs no file descriptor of its own.
  void wait_out(const Limit& limit);

 private:
  bool forked() const;

  const std::shared_ptr<CallThreadState> state_;
  const std::unique_ptr<Waker> real_waker_;
  const int made_by_;  ///< The process.
  std::thread thread_;
};

}  // namespace tenure
