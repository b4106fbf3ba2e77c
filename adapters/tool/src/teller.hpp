// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <tenure/log.hpp>

#include "service_manager.hpp"

namespace tenure::tool {

/// Tells what `run` does: to its log, and to the service manager. One thread uses it.
class Teller {
 public:
  Teller(ServiceManager& manager, Log log, std::string election);

  void say(const std::string& what, Level level = Level::info) const;
  void waits(const std::string& what);  ///< For instance "waits: bob leads". It is said once for each change.
  void is(const std::string& what);     ///< The service manager alone hears it: the manager's own log has said it.

 private:
  ServiceManager& manager_;
  const Log log_;
  const std::string election_;
  std::string last_;  ///< What it waits for, as it was said.
};

}  // namespace tenure::tool
