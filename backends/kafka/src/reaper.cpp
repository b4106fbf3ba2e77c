// SPDX-License-Identifier: Apache-2.0
#include "reaper.hpp"

#include <pthread.h>

#include <atomic>
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
constexpr auto patience_at_exit = seconds(1);
constexpr auto step = milliseconds(5);

}  // namespace

/// Never destroyed: its thread may outlive static objects by the patience at exit.
struct Reaper::Impl {
  struct Closing {
    std::shared_ptr<Client> client;
    std::function<void()> left;
    Clock::Time give_up;
  };

  std::mutex mutex;
  std::vector<Closing> arrived;
  std::vector<std::thread> threads;
  std::unique_ptr<Waker> wakes{boot_clock().make_waker()}, exit_wakes{boot_clock().make_waker()};
  bool exiting{}, finished{};
  std::thread thread;

  void run() {
    std::vector<Closing> closing;
    for (;;) {
      std::vector<std::thread> joining;
      bool last = false;
      {
        const std::lock_guard lock(mutex);
        for (auto& next : arrived) closing.push_back(std::move(next));
        arrived.clear();
        joining.swap(threads);
        last = exiting;
      }
      serve(closing);
      for (auto& t : joining) t.join();
      const std::lock_guard lock(mutex);
      if (!arrived.empty() || !threads.empty()) continue;
      if (closing.empty() && last) break;
      wait_outside_lock(closing.empty());
    }
    const std::lock_guard lock(mutex);
    finished = true;
    exit_wakes->wake();
  }

  void wait_outside_lock(bool idle) {
    mutex.unlock();
    wakes->wait_until(idle ? Clock::Time::max() : boot_clock().now() + step);
    mutex.lock();
  }

  static void serve(std::vector<Closing>& closing) {
    std::erase_if(closing, [](Closing& c) {
      if (!c.client->closed() && boot_clock().now() < c.give_up) return false;
      if (c.left) c.left();
      c.client.reset();
      return true;
    });
  }

  void finish() {
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

namespace {
void start_once(std::thread& thread, auto run) {
  if (thread.joinable()) return;
  thread = std::thread(run);
  pthread_setname_np(thread.native_handle(), "tenure-k-close");
}
}  // namespace

void Reaper::close(std::shared_ptr<Client> client, std::function<void()> left) {
  client->on_events(nullptr);
  client->begin_close();
  const std::lock_guard lock(impl_.mutex);
  impl_.arrived.push_back({std::move(client), std::move(left), boot_clock().now() + patience});
  start_once(impl_.thread, [impl = &impl_] { impl->run(); });
  impl_.wakes->wake();
}

void Reaper::join(std::thread thread) {
  const std::lock_guard lock(impl_.mutex);
  impl_.threads.push_back(std::move(thread));
  start_once(impl_.thread, [impl = &impl_] { impl->run(); });
  impl_.wakes->wake();
}

}  // namespace tenure::kafka
