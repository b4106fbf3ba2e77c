// SPDX-License-Identifier: Apache-2.0
// The user's log, for what outlives its user.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

#include <tenure/log.hpp>

#include "settings.hpp"

namespace tenure::kafka {

/// The lines of an election and of its handles go here, without secrets. It outlives every handle. close() ends the
/// use of the user's log. Any thread may call it.
class ClosableLog {
 public:
  explicit ClosableLog(const Options& options);
  void write(Level level, std::string_view message) noexcept;
  /// Returns when the user's function is not running and will not be called again. REQUIRES: not called by it.
  void close() noexcept;
  const Redactor& redacted() const { return redacted_; }

 private:
  Log log_;
  Redactor redacted_;
  std::string election_;
  std::atomic<bool> closed_{false};
  std::atomic<unsigned> writing_{0};
};

}  // namespace tenure::kafka
