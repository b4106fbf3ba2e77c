// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenure::http {

/// Which Host a request may name: see ServerOptions::hosts.
class Hosts {
 public:
  /// `listens_at`: as host_and_port() takes it.
  Hosts(std::string_view listens_at, std::vector<std::string> names);

  /// `header`: the value of Host, or nothing.
  bool allow(std::string_view header) const;

 private:
  bool any_;
  std::vector<std::string> names_;
};

}  // namespace tenure::http
