// SPDX-License-Identifier: Apache-2.0
#include "reaper.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include <tenure/clock.hpp>

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A coordinator that does not answer a LeaveGroup must not keep a handle for ever; its session ends by
/// itself.
constexpr auto patience = seconds(10);
constexpr auto patience_at_exit = seconds(3);
constexpr auto step = milliseconds(5);

}  // namespace

/// Never destroyed: its thread may outlive static objects by the patience at exit.
struct Reaper::Impl {
  /// Done when it says so: a handle out of its group, or a thread at its end.
  using Task = std::function<bool()>;

  std::mutex mutex;
  std::vector<Task> arrived;
  std::unique_ptr<Waker> wakes{boot_clock().make_waker()}, exit_wakes{boot_clock().make_waker()};
  bool exiting{}, finished{};
  const pid_t made_by{::getpid()};
  std::thread thread;

  void add(Task task) {
    const std::lock_guard lock(mutex);
    arrived.push_back(std::move(task));
    if (!thread.joinable()) {
      thread = std::thread([this] { run(); });
      pthread_setname_np(thread.native_handle(), "tenure-k-close");
    }
    wakes->wake();
  }

  void run() {
    std::vector<Task> tasks;
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        for (auto& task : arrived) tasks.push_back(std::move(task));
        arrived.clear();
      }
      std::erase_if(tasks, [](const Task& done) { return done(); });
      {
        const std::lock_guard lock(mutex);
        if (tasks.empty() && arrived.empty() && exiting) {
          finished = true;
          exit_wakes->wake();
          return;
        }
      }
      wakes->wait_until(tasks.empty() ? Clock::Time::max() : boot_clock().now() + step);
    }
  }

  void finish() {
    if (::getpid() != made_by) return;  // A child has no such thread.
    const auto by = boot_clock().now() + patience_at_exit;
    {
      const std::lock_guard lock(mutex);
      if (!thread.joinable()) return;
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
  static Reaper& reaper = *new Reaper;
  static const struct AtExit {
    ~AtExit() { reaper.impl_.finish(); }
  } at_exit;
  return reaper;
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

void Reaper::join(std::thread thread, std::shared_ptr<const std::atomic<bool>> over) {
  impl_.add([thread = std::make_shared<std::thread>(std::move(thread)), over = std::move(over)] {
    if (!*over) return false;
    thread->join();
    return true;
  });
}

}  // namespace tenure::kafka
