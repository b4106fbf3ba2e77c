// SPDX-License-Identifier: Apache-2.0
// Any store by its URL, so that swapping the store is changing one string.
//
//   memory:name                                    this process alone; for tests             <tenure/memory.hpp>
//   file:///directory                              the processes of this host                <tenure/file.hpp>
//   kafka://host:port,host:port/topic?group=...    an Apache Kafka cluster                   <tenure/kafka.hpp>
//   postgres://..., postgresql://...               libpq's own URI, handed on untouched      <tenure/postgres.hpp>
//   redis://, rediss://, redis+unix://,            Redis or Valkey                           <tenure/redis.hpp>
//   redis+sentinel://
//
// What a URL may say beyond that, and which properties there are, stands in the store's own header.
#pragma once
#include <string_view>

#include <tenure/open.hpp>
#include <tenure/stores_export.hpp>

namespace tenure {

/// A seat at an election, and the timings that suit its store. Any thread.
///
/// Connects to nothing yet: an unreachable store is an Error of the seat's verbs.
/// Throws std::invalid_argument for what can never work: an unknown scheme (which is near, and which there are), a
/// store that was left out of this build (with the option that builds it), and whatever the store itself refuses.
/// No message has a user, a password or a property's value in it.
TENURE_STORES_EXPORT Opened open(const Opening& opening);

TENURE_STORES_EXPORT Opened open(std::string_view url, std::string_view election, Candidate candidate = {},
                                 Log log = {});

}  // namespace tenure
