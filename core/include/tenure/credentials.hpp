// SPDX-License-Identifier: Apache-2.0
// User and password for a store that changes them while a process runs.
#pragma once
#include <functional>
#include <string>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// What one login needs.
struct Credentials {
  std::string user{}, password{};  ///< `password` may be a token.
};

/// Called before each login, one call at a time for each connection, on a thread of ours; over Kafka also by open() and
/// request_step_down(). It may block for as long as a login may take. What it throws is the reason why nobody is logged
/// in, so have no secret in that.
using AskCredentials = std::function<Credentials()>;

}  // namespace tenure
