// SPDX-License-Identifier: Apache-2.0
#include "hosts.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include <tenure/kit/security.hpp>
#include <tenure/kit/text.hpp>

#include "socket.hpp"

namespace tenure::http {
namespace {

/// Without the port and without the brackets of "[::1]:80".
std::string name_in(std::string_view header) {
  if (header.starts_with('[')) return std::string(header.substr(1, header.find(']') - 1));
  return lower(header.substr(0, header.rfind(':')));
}

bool numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

}  // namespace

Hosts::Hosts(std::string_view listens_at, std::vector<std::string> names)
    : any_(!loopback(host_and_port(listens_at).first)), names_(std::move(names)) {
  for (auto& name : names_) name = lower(name);
}

bool Hosts::allow(std::string_view header) const {
  if (any_ || header.empty()) return true;  // A browser names one always.
  const auto name = name_in(header);
  return name == "localhost" || numeric(name) || std::find(names_.begin(), names_.end(), name) != names_.end();
}

}  // namespace tenure::http
