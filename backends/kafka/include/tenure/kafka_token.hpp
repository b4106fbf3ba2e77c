// SPDX-License-Identifier: Apache-2.0
// Tokens for clusters that take SASL/OAUTHBEARER: cloud services with identities of their own, or an identity provider.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include <tenure/result.hpp>

namespace tenure::kafka {

/// What a cluster is to take us by, for a time.
struct OauthToken {
  std::string value{};                              ///< Such as a JWT. No log and no error shows it.
  std::chrono::milliseconds lasts{};                ///< From now on. REQUIRES: above zero.
  std::string principal{};                          ///< Of whom it is.
  std::map<std::string, std::string> extensions{};  ///< Of SASL. Most clusters want none.
};

/// Returns a token, or why there is none. It is called when an election's client handles are made, and again when four
/// fifths of a token's time are over. After an error it is called again 10 s later; the error is told to Hooks::error.
///
/// Threads: several threads may call it at once, and none of them serves the election. It may block: for less than the
/// rest of a token's time, and the backend's destructor waits for it. It must not destroy the backend. What it throws
/// is an error. Nobody calls it once the backend is destroyed.
using OauthTokenSource = std::function<Result<OauthToken>()>;

}  // namespace tenure::kafka
