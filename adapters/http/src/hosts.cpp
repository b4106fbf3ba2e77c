// SPDX-License-Identifier: Apache-2.0
// Compares the Host of a request with the names that we answer to: no page of somebody else's is to read our answers
// through a browser.
#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <tenure/http.hpp>
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

std::function<bool(std::string_view)> host_filter(std::vector<std::string> hosts) {
  std::array<char, 256> own{};
  if (::gethostname(own.data(), own.size() - 1) == 0) hosts.emplace_back(own.data());
  for (auto& name : hosts) name = name_in(name);
  return [known = std::move(hosts)](std::string_view header) {
    if (header.empty()) return true;  // HTTP/1.0; a browser names one always
    const auto name = name_in(header);
    return name == "localhost" || numeric(name) || std::find(known.begin(), known.end(), name) != known.end();
  };
}

}  // namespace tenure::http
