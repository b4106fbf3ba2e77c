// SPDX-License-Identifier: Apache-2.0
// The thread that closes handles, and what it does at the end of the process.
#include "reaper.hpp"

#include <pthread.h>
#include <unistd.h>

#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/start_thread.hpp>

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A coordinator that does not answer a LeaveGroup must not keep a handle for ever. Its session ends by itself.
constexpr auto patience = seconds(10);
constexpr auto patience_at_exit = seconds(3);
constexpr auto step = milliseconds(5);

/// Whether the coordinator does.
bool answers(Client& client) {
  try {
    const auto found = client.committed(1, read_limit);
    return found || (found.error().fault != Fault::timed_out && found.error().fault != Fault::unreachable);
  } catch (const std::exception&) {  // no memory: try again
    return false;
  }
}

}  // namespace

/// Makes the lock free in a child of fork.
std::mutex& fork_safe_mutex() {
  static auto& it = *new std::mutex;
  // This fails only if memory has run out; then a child may hang, as it would without it.
  [[maybe_unused]] static const int registered = ::pthread_atfork(
      [] { fork_safe_mutex().lock(); }, [] { fork_safe_mutex().unlock(); }, [] { fork_safe_mutex().unlock(); });
  return it;
}

/// Never destroyed: its thread may outlive static objects by the patience at exit.
struct Reaper::Impl {
  /// Called until it returns true: the handle is out of its group, or the thread has ended.
  using Task = std::function<bool()>;

  std::mutex mutex, late_mutex;
  std::vector<Task> arrived;
  bool exiting{}, finished{};
  Clock::Time exit_by{Clock::Time::max()};
  const pid_t made_by{::getpid()};
  const std::unique_ptr<Waker> wakes{boot_clock().make_waker()}, exit_wakes{boot_clock().make_waker()};
  std::thread thread{start_thread("tenure-k-close", [this] { run(); })};  ///< Last: it uses all of them.

  void add(Task task) {
    {
      const std::lock_guard lock(mutex);
      if (!finished) {
        arrived.push_back(std::move(task));
        wakes->wake();
        return;
      }
    }
    do_late(std::move(task));
  }

  /// A backend in a static variable may end after main() and after the thread; its destructor waits here. A task that
  /// it gives up is kept, because it may hold a thread that still runs.
  void do_late(Task task) {
    const std::lock_guard late_lock(late_mutex);
    while (!done(task)) {
      if (boot_clock().now() >= exit_by) {
        const std::lock_guard lock(mutex);
        arrived.push_back(std::move(task));
        return;
      }
      exit_wakes->wait_until(boot_clock().now() + step);
    }
  }

  void run() {
    std::vector<Task> tasks;
    for (;;) {
      const bool all = take_arrived(tasks);
      std::erase_if(tasks, done);
      if (all && tasks.empty() && ended()) return;
      wakes->wait_until(all && tasks.empty() ? Clock::Time::max() : boot_clock().now() + step);
    }
  }

  /// False if there is no memory for it now.
  bool take_arrived(std::vector<Task>& tasks) {
    const std::lock_guard lock(mutex);
    try {
      tasks.reserve(tasks.size() + arrived.size());
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (auto& task : arrived) tasks.push_back(std::move(task));
    arrived.clear();
    return true;
  }

  static bool done(const Task& task) {
    try {
      return task();
    } catch (const std::exception&) {  // no memory: try again the next time
      return false;
    }
  }

  bool ended() {
    const std::lock_guard lock(mutex);
    if (!arrived.empty() || !exiting) return false;
    finished = true;
    exit_wakes->wake();
    return true;
  }

  void finish() {
    if (::getpid() != made_by) return;  // A child has no such thread.
    const auto by = boot_clock().now() + patience_at_exit;
    {
      const std::lock_guard lock(mutex);
      exit_by = by;
      exiting = true;
      wakes->wake();
    }
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        if (finished) break;
      }
      if (!exit_wakes->wait_until(by) && boot_clock().now() >= by) return;
    }
    thread.join();
  }
};

Reaper::Reaper() : impl_(*new Impl) {}

Reaper& Reaper::instance() {
  static Reaper* one = nullptr;
  const std::lock_guard lock(fork_safe_mutex());
  // A child of fork has a copy of its parent's reaper, whose thread does not run here.
  if (!one || one->impl_.made_by != ::getpid()) one = new Reaper;
  static const struct AtExit {
    ~AtExit() { one->impl_.finish(); }
  } at_exit;
  return *one;
}

void Reaper::close(std::shared_ptr<Client> client, std::function<void()> left) {
  client->on_events(nullptr);
  client->begin_close();
  impl_.add([client = std::move(client), left = std::move(left), give_up = boot_clock().now() + patience] {
    if (!client->closed() && boot_clock().now() < give_up) return false;
    left();
    return true;
  });
}

void Reaper::close_when_heard(const std::shared_ptr<Client>& client, Clock::Duration session,
                              std::function<void()> left) {
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto leave = [this, client, left = std::move(left)] {
    client->unsubscribe();
    close(client, left);
  };
  try {
    const std::shared_ptr<Waker> pause = boot_clock().make_waker();
    auto ask = [client, pause, leave, over, by = boot_clock().now() + session] {
      while (boot_clock().now() < by && !answers(*client)) pause->wait_until(boot_clock().now() + 10 * step);
      try {
        leave();
      } catch (const std::exception&) {  // No memory: the session ends by itself.
      }
      *over = true;
    };
    join(start_thread("tenure-k-leave", std::move(ask)), over);
  } catch (const std::system_error&) {  // Threads or descriptors have run out.
    leave();
  }
}

void Reaper::join(std::thread thread, std::shared_ptr<const std::atomic<bool>> over) {
  std::shared_ptr<std::thread> kept;
  try {
    kept = std::make_shared<std::thread>(std::move(thread));
    impl_.add([kept, over = std::move(over)] {
      if (!*over) return false;
      kept->join();
      return true;
    });
  } catch (const std::bad_alloc&) {  // A destructor calls this. So it waits itself.
    (kept ? *kept : thread).join();
  }
}

}  // namespace tenure::kafka
