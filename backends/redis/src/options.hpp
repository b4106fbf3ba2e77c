// SPDX-License-Identifier: Apache-2.0
// What users set: from a URL, and checked. Pure.
#pragma once
#include <string>

#include <tenure/kit/url.hpp>
#include <tenure/redis.hpp>

namespace tenure::redis {

/// Throws as from_url() does. It refuses everything in the query that is not one of `keys`.
Options from(Url url);

/// The same. Throws std::invalid_argument naming the field that can never work.
const Options& checked(const Options& options);

/// The key of an election's record, and the channel of its changes. Different elections have different keys whatever
/// bytes are in their names; what stands between braces lets a cluster keep a user's own keys beside it. Throws as
/// check_election() does.
std::string key_of(const Options& options, const std::string& election);

/// The same for a group, whose keys begin with it.
std::string group_key_of(const Options& options, const std::string& group);

/// "host:port", an IPv6 address in brackets.
std::string to_string(const Address& address);
/// The same, and the address of that name: "host:port (10.0.0.1)".
std::string to_string(const Address& named, const Address& resolved);

}  // namespace tenure::redis
