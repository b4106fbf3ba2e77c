// SPDX-License-Identifier: Apache-2.0
// TLS on a connection to a server.
#pragma once
#include <optional>
#include <string>

#include <tenure/redis.hpp>

struct redisContext;

namespace tenure::redis {

/// Shakes hands if the options ask for TLS and this was not done yet. It verifies chain and host name. An error says
/// what is wrong.
std::optional<std::string> secure(redisContext& context, const Options& options, const std::string& host);

}  // namespace tenure::redis
