// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>

namespace tenure::tool {

/// What systemd, or whoever else set NOTIFY_SOCKET, is told of us: sd_notify(3). Without that variable nothing is sent.
/// One thread uses it.
class ServiceManager {
 public:
  /// Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: they are for us, and not for what we
  /// run. REQUIRES: no other thread runs.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool listens() const { return socket_ >= 0; }

  /// For instance "READY=1". Whatever it cannot take at once is dropped.
  void tell(std::string_view assignment) const;
  void status(std::string_view text);  ///< "STATUS=...", if it is a new one.

  /// How often it wants "WATCHDOG=1": half of its limit.
  std::optional<Clock::Duration> beat() const { return beat_; }

 private:
  int socket_{-1};
  std::optional<Clock::Duration> beat_;
  std::string status_;
};

}  // namespace tenure::tool
