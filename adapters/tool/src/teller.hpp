// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <tenure/clock.hpp>

#include "service_manager.hpp"

namespace tenure::tool {

/// Tells what `run` does: on stderr, to the service manager, and to a person at a terminal while nothing runs. One
/// thread uses it.
class Teller {
 public:
  explicit Teller(ServiceManager& manager);
  ~Teller() { clear(); }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  void say(const std::string& what);  ///< A line on stderr.

  /// What we do: "waits: bob leads". `more` changes with the time, and only a person hears it: "3.4 s left".
  void waits(const std::string& what, const std::string& more);
  void runs(const std::string& what);  ///< The terminal is the command's.

  bool is_heard() const { return live_ || manager_.listens(); }

  /// When waits() is due again, so that a person sees it live. Never, if nobody looks.
  Clock::Time next(Clock::Time now) const { return live_ ? now + std::chrono::milliseconds(100) : Clock::Time::max(); }

 private:
  void clear();

  ServiceManager& manager_;
  const bool live_;
  bool drawn_{};  ///< The last line of the terminal is ours.
  unsigned turn_{};
};

}  // namespace tenure::tool
