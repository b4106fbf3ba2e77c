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

/// One connection of a client library that cannot be told by when to return, and the thread on which it is made and
/// asked. What runs there is not thrown away because a call's limit passed: the caller leaves, and later calls wait for
/// it to their own limits, so that nothing overtakes it either.
///
/// Making the connection is a thing of its own: calls wait for it, and it survives them. Each of its steps may take
/// `patience`; after an attempt that this ended twice as long, up to four times; after one that succeeded as at first.
/// More would heal late: a lost SYN is sent again after 1, 3 and 7 s. Failed attempts are backed off, with jitter and
/// no longer than a call, so that an outage is over for us as soon as for others.
/// A question that outlasts its call is ended by the next call that waits its whole limit for it.
///
/// REQUIRES: one caller at a time. What a call captures is shared, not borrowed, since it may outlive its caller.
class TENURE_EXPORT CallThread {
 public:
  /// What is being made, as connect() tells it. Its own thread only.
  class TENURE_EXPORT Attempt {
   public:
    /// The next step: with whom ("postgres (host:5432/db)"), and what is done, for messages. `descriptor` is shut down
    /// when the step has taken too long, and later to end a question; a duplicate is kept, so whoever opened it may
    /// close it. A step without one (a name resolution) ends by itself. False: connect() is to return at once.
    bool step(std::string with, std::string what, int descriptor = -1);
    /// How long a step may take.
    Clock::Duration patience() const;
    /// What one question and its answer took, for messages.
    void round_trip(Clock::Duration measured);

   private:
    friend struct CallThreadState;
    explicit Attempt(CallThreadState& state) : state_(state) {}
    CallThreadState& state_;
  };

  /// What a backend makes of its library's connection. Called on the thread alone, and outlives it where it must.
  class TENURE_EXPORT Connection {
   public:
    virtual ~Connection() = default;
    /// Makes it, to where it may be asked. An error says why not, and with whom. REQUIRES: the last step has its
    /// socket.
    virtual std::optional<Error> connect(Attempt& attempt) = 0;
    /// Whether it stands, as far as can be told without asking. Called before each call, also before the first.
    virtual bool stands() = 0;
  };

  /// For calls that wait for the other end to speak first.
  class TENURE_EXPORT Socket {
   public:
    /// Sleeps until there is something to read, or an end of stream. False: the call is to return without more ado.
    bool wait();

   private:
    friend struct CallThreadState;
    explicit Socket(CallThreadState& state) : state_(state) {}
    CallThreadState& state_;
  };

  explicit CallThread(std::shared_ptr<Connection> connection, Clock::Duration patience = std::chrono::seconds(2));
  ~CallThread();  ///< Ends what runs; waits for it no longer than 50 ms. Allocates nothing.
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// Nothing: `body` ran on the connection and returned. An error: not by the limit, and it says what is waited for; or
  /// there is no connection; or this is a forked child. Unless it names a question without answer, the body was not
  /// begun.
  std::optional<Error> call(std::function<void(Socket&)> body, const Limit& limit);

  /// What `body` returned, a Result, or call()'s error.
  template <class F>
  auto ask(F body, const Limit& limit) {
    using Returned = std::invoke_result_t<F&, Socket&>;
    const auto answer = std::make_shared<std::optional<Returned>>();
    auto error = call([answer, run = std::move(body)](Socket& socket) mutable { answer->emplace(run(socket)); }, limit);
    return error ? Returned(std::move(*error)) : std::move(**answer);
  }

  /// As wait_out(), without a descriptor of its own where the limit's clock is boot_clock().
  void wait_out(const Limit& limit);

 private:
  bool forked() const;

  const std::shared_ptr<CallThreadState> state_;
  const std::unique_ptr<Waker> real_waker_;
  const int made_by_;  ///< Process.
  std::thread thread_;
};

}  // namespace tenure
