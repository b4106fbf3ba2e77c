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

/// When a limit passes, by boot_clock(), which unlike its own clock outlives every call. At most a day from now.
TENURE_EXPORT Clock::Time by_boot_clock(const Limit& limit);

struct CallThreadState;

/// One connection of a client library that cannot be told by when to return, and the thread that sees to it.
///
/// A call on an established connection runs on its caller's thread, so that it costs no change of threads; if it still
/// runs when its limit passes or its stop is requested, it is ended from outside: its wait() returns false, or the
/// socket that it told by use() is shut down, which ends any read or write. Only what that cannot end, a name
/// resolution or a connect, runs on the thread; it goes on alone after its limit, and holds up later calls to theirs.
/// A SIGPIPE of the library's kills nobody on either.
///
/// REQUIRES: one caller at a time. What a call captures is shared, not borrowed, since it may outlive its caller.
class TENURE_EXPORT CallThread {
 public:
  /// The connection's socket, as calls see it.
  class TENURE_EXPORT Socket {
   public:
    /// Asked before a connect or whatever else no shutdown ends. False: return at once, having done nothing; the same
    /// call is made again, on the thread.
    bool may_connect();
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
  const std::shared_ptr<CallThreadState> state_;
  const std::unique_ptr<Waker> real_waker_;
  const int made_by_;  ///< Process.
  std::thread thread_;
};

}  // namespace tenure
