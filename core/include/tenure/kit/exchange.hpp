// SPDX-License-Identifier: Apache-2.0
// For those who write a backend on a client library whose reads and writes need not block.
#pragma once
#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/limit.hpp>

namespace tenure {

struct CallThreadState;

/// A question and its answer on the caller's own thread; see CallThread::exchange(). It bounds every sleep by the
/// caller's limit.
///
/// An answer that has not come by then is owed. Whoever uses the connection next must read it first.
class TENURE_EXPORT Exchange {
 public:
  /// Whether the caller's limit has passed or its stop is requested. Then return no_answer() at once.
  bool over() const { return limit_.passed(); }
  Error no_answer() const;  ///< The error that says why there is no answer.

  /// Sleeps until the connection's socket may be ready for one of poll()'s `events`, or until it is over(). It may
  /// return early.
  void wait(short events) const;

 private:
  friend struct CallThreadState;
  Exchange(CallThreadState& state, Waker& waker, Waker& real_waker, const Limit& limit)
      : state_(state), waker_(waker), real_waker_(real_waker), limit_(limit), call_(limit.by - limit.clock.now()) {}

  CallThreadState& state_;
  Waker &waker_, &real_waker_;
  const Limit& limit_;
  const Clock::Duration call_;  ///< How long its caller waits.
};

}  // namespace tenure
