// SPDX-License-Identifier: Apache-2.0
// For those who write a backend on a client library whose calls block.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <tenure/backend.hpp>

namespace tenure {

struct CallThreadState;

/// A thread for one connection of a client library that cannot be told by when to return.
///
/// Calls run on it one at a time, with every signal blocked, so that a SIGPIPE of the library's kills nobody. What
/// still runs when its limit passes or its stop is requested is ended from outside: its wait() returns false, or the
/// socket that it told by use() is shut down, which ends any read or write. What even that does not end (a name
/// resolution, a connect) goes on alone, and holds up later calls to their limits, until it has returned.
///
/// REQUIRES: one caller at a time. What a call captures is shared, not borrowed, since it may outlive its caller.
class TENURE_EXPORT CallThread {
 public:
  /// The connection's socket, as the thread's calls see it.
  class TENURE_EXPORT Socket {
   public:
    /// What to shut down to end a call; -1: nothing any more. Keeps a duplicate, so whoever opened it may close it.
    /// False: the call was ended meanwhile (or no descriptor is left). It is to return at once; the connection stays
    /// good for the next.
    bool use(int descriptor);
    /// Sleeps until there is something to read, or an end of stream. False: the call is to return without more ado.
    bool wait();

   private:
    friend struct CallThreadState;
    explicit Socket(CallThreadState& state) : state_(state) {}
    CallThreadState& state_;
  };

  CallThread();
  ~CallThread();  ///< Ends what runs; waits for it no longer than 50 ms.
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// True: `body` ran and returned. False: not by the limit; whether it ran, and to what effect, is unknown.
  /// REQUIRES: `body` does not throw.
  bool call(std::function<void(Socket&)> body, const Limit& limit);

  /// What `body` returned; nothing if call() would be false.
  template <class F>
  auto ask(F body, const Limit& limit) {
    using Value = std::invoke_result_t<F&, Socket&>;
    const auto value = std::make_shared<std::optional<Value>>();
    const bool returned =
        call([value, run = std::move(body)](Socket& socket) mutable { value->emplace(run(socket)); }, limit);
    return returned ? std::move(*value) : std::optional<Value>();
  }

 private:
  Waker& waker_of(Clock& clock);

  const std::shared_ptr<CallThreadState> state_;
  const std::unique_ptr<Waker> real_waker_;
  Clock* clock_{};
  std::unique_ptr<Waker> waker_;
  std::thread thread_;
};

}  // namespace tenure
