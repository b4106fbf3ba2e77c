// SPDX-License-Identifier: Apache-2.0
// Looks whether the topic is there, and creates it if that is wanted.
#pragma once
#include <optional>

#include <tenure/error.hpp>
#include <tenure/kafka.hpp>
#include <tenure/result.hpp>

#include "client.hpp"
#include "closable_log.hpp"

namespace tenure::kafka {

/// How many partitions the topic has. If the options ask for it, a missing one is created by who `may_create`, as a
/// candidate may: then `wakes` is waited on until every broker knows of it. For others it has 0 partitions.
Result<int> topic_partitions(const Options& options, bool may_create, Client& observer, Waker& wakes, ClosableLog& log);

/// What is wrong with so many, for a single election.
std::optional<Error> too_few(int partitions, const Options& options);

}  // namespace tenure::kafka
