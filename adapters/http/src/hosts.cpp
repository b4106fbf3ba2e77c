// SPDX-License-Identifier: Apache-2.0
// Compares the Host of a request with the names that we answer to.
#include "hosts.hpp"

#include <tenure/http_mount.hpp>

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <tenure/kit/text.hpp>

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

Hosts::Hosts(std::vector<std::string> names) : names_(std::move(names)) {
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0) names_.emplace_back(own.data());
  for (auto& name : names_) name = lower(name);
}

bool Hosts::allow(std::string_view header) const {
  if (header.empty()) return true;  // HTTP/1.0; a browser names one always
  const auto name = name_in(header);
  return name == "localhost" || numeric(name) || std::find(names_.begin(), names_.end(), name) != names_.end();
}

std::function<bool(std::string_view)> host_filter(std::vector<std::string> hosts) {
  return [known = Hosts(std::move(hosts))](std::string_view host) { return known.allow(host); };
}

}  // namespace tenure::http
