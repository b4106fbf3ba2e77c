// SPDX-License-Identifier: Apache-2.0
// A TCP relay on loopback that stands between candidates and a broker: counts Kafka requests by process and kind, holds
// answers back, or goes mute while the connections stay open.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <tenure/clock.hpp>

namespace tenure::test {

/// Kafka's name of a request.
std::string api_name(int key);

class Relay {
 public:
  /// Listens on 127.0.0.1:`port` and forwards to 127.0.0.1:`to`. Port 0: does nothing.
  Relay(int port, int to);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Requests forwarded so far, by process and Kafka's api key.
  std::map<std::pair<pid_t, int>, std::uint64_t> requests() const;

  /// Answers to this process (0: to all) are held back for so long from now on.
  void delay_answers(Clock::Duration by, pid_t of = 0);

  /// Nothing more passes to or from this process (0: all) while the connections stay open.
  void mute(bool on, pid_t of = 0);

 private:
  struct Connection;
  void serve(std::stop_token stop);

  int listener_{-1}, to_{};
  mutable std::mutex mutex_;
  std::map<std::pair<pid_t, int>, std::uint64_t> requests_;
  Clock::Duration delay_{};
  pid_t delayed_{}, muted_{};
  bool mute_{};
  std::jthread thread_;
};

}  // namespace tenure::test
