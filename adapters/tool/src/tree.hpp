// SPDX-License-Identifier: Apache-2.0
// Whether processes of a tenure's command are left, for the hooks.
#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>

#include <tenure/token.hpp>

namespace tenure::tool {

/// The processes of a tenure's command, as the hooks know them: ousting() waits until none of them is left. Any thread
/// may call it.
class Tree {
 public:
  /// They run, or are about to. False: nothing is started any more.
  bool claim(Token tenure) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tenure_ = tenure;
    return true;
  }

  /// None of them is left. That of a later tenure stays, for word of a former end may come late.
  void free(Token tenure) {
    const std::lock_guard lock(mutex_);
    if (tenure_ == tenure) let_go();
  }

  /// None is left, and nothing is started any more.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    let_go();
  }

  bool is_free() const {
    const std::lock_guard lock(mutex_);
    return !tenure_;
  }

  void await_end() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !tenure_; });
  }

 private:
  void let_go() {
    tenure_.reset();
    freed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable freed_;
  std::optional<Token> tenure_;
  bool closed_{};
};

}  // namespace tenure::tool
