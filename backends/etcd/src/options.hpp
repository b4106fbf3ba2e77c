// SPDX-License-Identifier: Apache-2.0
// What users set: from a URL, and checked. Pure.
#pragma once
#include <optional>
#include <string>

#include <tenure/etcd.hpp>
#include <tenure/kit/url.hpp>

namespace tenure::etcd {

/// Throws as from_url() does. It refuses everything in the query that it does not know.
Options from(Url url);

/// The same. Throws std::invalid_argument naming the field that can never work.
const Options& checked(const Options& options);

/// The keys of one election. Different elections have different keys whatever bytes are in their names.
struct Keys {
  std::string record, news, step_down;
};

/// Throws as check_election() does.
Keys keys_of(const Options& options, const std::string& election);

/// The keys of all records begin with it, and it ends with a '/'.
std::string records_of(const Options& options);

/// The election of a record's key. Nothing: no election has such a name.
std::optional<std::string> election_of(const Options& options, const std::string& key);

/// "host:port", an IPv6 address in brackets.
std::string to_string(const Address& address);

}  // namespace tenure::etcd
