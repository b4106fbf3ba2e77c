// SPDX-License-Identifier: Apache-2.0
// A mutex of which clang knows what it guards (-Wthread-safety).
#pragma once
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define TENURE_THREADS(...) __attribute__((__VA_ARGS__))
#else
#define TENURE_THREADS(...)
#endif
#define TENURE_GUARDED_BY(mutex) TENURE_THREADS(guarded_by(mutex))      ///< Of a member: used only while it is held.
#define TENURE_HOLDS(mutex) TENURE_THREADS(requires_capability(mutex))  ///< Of a function: REQUIRES that it is held.

namespace tenure {

class TENURE_THREADS(capability("mutex")) Mutex {
 public:
  void lock() TENURE_THREADS(acquire_capability()) { mutex_.lock(); }
  void unlock() TENURE_THREADS(release_capability()) { mutex_.unlock(); }

  /// Sleeps without it until it is notified.
  void wait(std::condition_variable& notified) TENURE_THREADS(requires_capability(this)) {
    std::unique_lock lock(mutex_, std::adopt_lock);
    notified.wait(lock);
    lock.release();
  }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex as long as it lives.
class TENURE_THREADS(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) TENURE_THREADS(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() TENURE_THREADS(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace tenure
