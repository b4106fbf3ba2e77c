// SPDX-License-Identifier: Apache-2.0
// Cuts secrets out of messages, and says which connections need TLS.
#include <tenure/kit/security.hpp>

#include <algorithm>
#include <utility>

#include <tenure/kit/logging.hpp>

namespace tenure {

Redactor::Redactor(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {
  std::erase(secrets_, std::string());
  std::sort(secrets_.begin(), secrets_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string Redactor::operator()(std::string_view text) const {
  constexpr std::string_view stars = "***";
  std::string out(text);
  for (const auto& secret : secrets_)
    for (auto at = out.find(secret); at != out.npos; at = out.find(secret, at + stars.size()))
      out.replace(at, secret.size(), stars);
  return out;
}

bool loopback(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host.empty() || host.front() == '/' || host.front() == '@' || host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

std::string unprotected(std::string_view server, std::string_view remedy) {
  return "TLS does not protect the connection to " + printable(server) +
         ": an attacker on the network could read what is sent, passwords included, and forge who leads. " +
         std::string(remedy);
}

}  // namespace tenure
