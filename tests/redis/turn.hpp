// SPDX-License-Identifier: Apache-2.0
// A shared server that each test finds as new.
#pragma once
#include <string>

#include "server.hpp"
#include "shared.hpp"

namespace tenure::redis::test {

/// One test's turn at a server that the tests of this process share. The next test finds it as if nothing had been done
/// to it, but for the keys below the prefix, which nobody else has.
class Turn {
 public:
  explicit Turn(Server& server) : server_(server) { server.mend(); }
  ~Turn() {
    hang(false);
    server_.step_clock(-stepped_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Server& server() const { return server_; }
  const std::string& prefix() const { return prefix_; }

  void hang(bool on) {
    if (on == hangs_) return;
    server_.freeze(on);
    hangs_ = on;
  }
  void step_clock(Clock::Duration by) {
    server_.step_clock(by);
    stepped_ += by;
  }

 private:
  Server& server_;
  const std::string prefix_ = unique_name("tenure") + ":";
  bool hangs_{};
  Clock::Duration stepped_{};
};

}  // namespace tenure::redis::test
