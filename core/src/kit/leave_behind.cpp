// SPDX-License-Identifier: Apache-2.0
// Keeps threads that nobody waits for, and joins them at the end of the process if they have ended.
#include <tenure/kit/leave_behind.hpp>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <utility>

#include <tenure/clock.hpp>

namespace tenure {
namespace {

constexpr auto patience_at_exit = std::chrono::seconds(1);
constexpr int step_ms = 1;
constexpr int most_registrations = 32;

/// The std::thread is never destroyed, because pthread_tryjoin_np() joins it without its knowledge.
union Left {
  explicit Left(std::thread left) : thread(std::move(left)) {}
  ~Left() {}  // NOLINT(modernize-use-equals-default): the member has a destructor, so this one would be deleted
  std::thread thread;
};

struct Node {
  Left left;
  pid_t process;  ///< A child of fork has no such thread.
  Node* next;
};

/// A stack without a lock: a child may be forked at any moment.
std::atomic<Node*> left_behind{nullptr};

void keep(Node* node) noexcept {
  node->next = left_behind.load();
  while (!left_behind.compare_exchange_weak(node->next, node)) {
  }
}

/// Whether none is left that still runs.
bool join_what_has_ended() noexcept {
  bool none = true;
  for (auto* node = left_behind.exchange(nullptr); node != nullptr;) {
    auto* const next = node->next;
    if (node->process != ::getpid() || ::pthread_tryjoin_np(node->left.thread.native_handle(), nullptr) == 0) {
      delete node;
    } else {
      keep(node);
      none = false;
    }
    node = next;
  }
  return none;
}

/// Nobody will join them, and a tool that looks for leaks need not report them.
void give_up() noexcept {
  for (auto* node = left_behind.exchange(nullptr); node != nullptr;) {
    if (node->process == ::getpid()) node->left.thread.detach();
    delete std::exchange(node, node->next);
  }
}

void wait_at_exit() {
  static const auto by = boot_clock().now() + patience_at_exit;  // for all registrations together
  while (!join_what_has_ended()) {
    if (boot_clock().now() >= by) return give_up();
    ::poll(nullptr, 0, step_ms);
  }
}

/// Whatever was registered later is called earlier. A client library may be loaded, and register its own end, after a
/// first thread was left behind: so this is registered more than once, but not without a limit.
void register_at_exit() noexcept {
  static std::atomic<int> registrations{0};
  if (registrations.load() < most_registrations && std::atexit(wait_at_exit) == 0) ++registrations;
}

}  // namespace

void leave_behind(std::thread thread) noexcept {
  join_what_has_ended();
  auto* const node = new (std::nothrow) Node{Left(std::thread()), ::getpid(), nullptr};
  if (!node) {
    thread.detach();
    return;
  }
  node->left.thread = std::move(thread);
  register_at_exit();
  keep(node);
}

}  // namespace tenure
