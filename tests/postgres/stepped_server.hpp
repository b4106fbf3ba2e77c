// SPDX-License-Identifier: Apache-2.0
// A shared server that can hang, and whose clock can be stepped.
#pragma once
#include <chrono>
#include <cstdint>

#include "server.hpp"
#include "shared.hpp"

namespace tenure::postgres::test {

/// One test's turn at a server that the tests of this process share, and that can hang and has a clock of its own. The
/// next test finds it as if nothing had been done to it.
class SteppedServer {
 public:
  SteppedServer() = default;
  ~SteppedServer() {
    hang(false);
    get().clock().step(-stepped_);
  }
  SteppedServer(const SteppedServer&) = delete;
  SteppedServer& operator=(const SteppedServer&) = delete;

  Server& get() const { return tenure::test::Shared<Server>::get(Server::How{.clock_shim = true}); }

  void hang(bool on) {
    if (on == hangs_) return;
    on ? get().freeze() : get().thaw();
    hangs_ = on;
  }
  /// Whether the server tells the time so.
  bool step_clock(Clock::Duration by) {
    const auto before = clock();
    get().clock().step(by);
    stepped_ += by;
    return std::chrono::abs(clock() - before - by) < std::chrono::seconds(10);
  }

 private:
  Clock::Duration clock() const {
    return std::chrono::milliseconds(
        sql(get().by_socket(), "select (extract(epoch from clock_timestamp()) * 1000)::bigint")[0][0]
            .as<std::int64_t>());
  }

  bool hangs_{};
  Clock::Duration stepped_{};
};

}  // namespace tenure::postgres::test
