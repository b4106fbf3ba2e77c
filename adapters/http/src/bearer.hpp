// SPDX-License-Identifier: Apache-2.0
// Compares the bearer token of a request with ours.
#pragma once
#include <cstddef>
#include <string_view>

namespace tenure::http {

/// Whether the header's value is "Bearer TOKEN". How long it takes tells nothing of the token but its length.
inline bool bears(std::string_view authorization, std::string_view token) {
  constexpr std::string_view scheme = "Bearer ";
  if (token.empty() || authorization.substr(0, scheme.size()) != scheme) return false;
  const auto given = authorization.substr(scheme.size());
  volatile unsigned char differs = given.size() != token.size();
  for (std::size_t i = 0; i < token.size(); ++i) {
    const char c = given.empty() ? '\0' : given[i % given.size()];
    differs = static_cast<unsigned char>(differs | static_cast<unsigned char>(c ^ token[i]));
  }
  return differs == 0;
}

}  // namespace tenure::http
