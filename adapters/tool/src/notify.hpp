// SPDX-License-Identifier: Apache-2.0
// sd_notify(3) in both directions: what the command tells us, and what we tell systemd.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>
#include <tenure/kit/descriptor.hpp>

namespace tenure::tool {

/// How the command tells that its work goes on: it writes to a descriptor that it finds open, or it sends "WATCHDOG=1"
/// as sd_notify(3) does. One thread uses it.
class Progress {
 public:
  Progress();  ///< Throws std::system_error.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  int writes() const { return write_.get(); }          ///< The command's end of a pipe.
  const std::string& socket() const { return name_; }  ///< For its NOTIFY_SOCKET: our user's and root's alone.
  static void remove(const std::string& socket);       ///< Its directory, too.
  void handed_on() { write_.reset(); }                 ///< The supervisor has its copy of writes(); ours is closed.

  int reads() const { return read_.get(); }  ///< Both are readable if told() has something.
  int hears() const { return socket_.get(); }
  /// Whether it has told anything since the last call.
  bool told() const;

 private:
  Descriptor read_, write_, socket_;
  std::string name_;
};

/// What systemd, or whoever else set NOTIFY_SOCKET, is told of us: sd_notify(3). Without that variable nothing is sent.
/// One thread uses it.
class ServiceManager {
 public:
  /// Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: they are for us, and not for what we
  /// run. REQUIRES: no other thread runs.
  ServiceManager();

  bool listens() const { return bool(socket_); }

  /// For instance "READY=1". Whatever it cannot take at once is dropped.
  void tell(std::string_view assignment) const;
  void status(std::string_view text);  ///< "STATUS=...", if it is a new one.

  /// How often it wants "WATCHDOG=1": half of its limit.
  std::optional<Clock::Duration> beat() const { return beat_; }

 private:
  Descriptor socket_;
  std::optional<Clock::Duration> beat_;
  std::string status_;
};

}  // namespace tenure::tool
