// SPDX-License-Identifier: Apache-2.0
// The strict fence of etcd: what your own transaction compares, through whatever client you use.
#pragma once
#include <string>
#include <string_view>

#include <tenure/token.hpp>

namespace tenure::fence {

/// Two comparisons of a transaction of your own, which both must hold:
///   value(key) > above   and   value(key) < below
/// They hold from the claim with this token on, through renewals and the release, until the next claim. So if etcd
/// carries the transaction out, no later leader had claimed. Else it does nothing, or what you gave it for that case.
/// The rest is up to you: other comparisons, any number of puts and deletions, keys with any names.
///
/// Why: the key is the election's record, whose text begins with its token. `above` and `below` enclose the texts that
/// begin with this one, since etcd compares values byte by byte. etcd carries out a claim and your transaction one
/// after the other, so that there is no gap, and neither waits for the other.
struct EtcdComparison {
  std::string key{}, above{}, below{};
};

/// `prefix`: what etcd::Options::prefix says. Where authentication is on, your user needs `read` on the key.
inline EtcdComparison etcd_leads(std::string_view election, Token token, std::string_view prefix = "tenure/") {
  const auto begins = "{\"token\":" + std::to_string(token.value);
  return {std::string(prefix).append("record/").append(election), begins + ',', begins + '-'};  // '-' follows ','
}

}  // namespace tenure::fence
