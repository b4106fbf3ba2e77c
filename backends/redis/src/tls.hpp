// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include <tenure/redis.hpp>

struct redisContext;

namespace tenure::redis {

/// Shakes hands if the options ask for TLS and it has not been done. Chain and host name are verified, or it is an
/// error: what is wrong.
std::optional<std::string> secure(redisContext& context, const Options& options, const std::string& host);

}  // namespace tenure::redis
