// SPDX-License-Identifier: Apache-2.0
// Keeps pages of others from reading our answers through a browser.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenure::http {

/// Which Host a request may name: see ServerOptions::hosts.
class Hosts {
 public:
  explicit Hosts(std::vector<std::string> names);

  /// `header`: the value of Host, or nothing.
  bool allow(std::string_view header) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace tenure::http
