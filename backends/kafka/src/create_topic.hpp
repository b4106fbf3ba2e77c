// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include <tenure/error.hpp>
#include <tenure/kafka.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "errors.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Creates a topic by a handle of its own, so that admin calls never meet a candidate's handle. It blocks for 5 s at
/// most. Throws std::runtime_error, redacted, if librdkafka refuses the properties.
std::optional<Error> create_topic(const Properties& properties, const Target& target, const CreateTopic& how,
                                  ClosableLog& log);

/// What is wrong with the topic. A missing one is created if the options ask for it; then `wakes` is waited on until
/// every broker knows of it. `exactly`: so many partitions are needed.
std::optional<Error> topic_trouble(const Options& options, Client& observer, Waker& wakes, ClosableLog& log,
                                   std::optional<int> exactly = {});

}  // namespace tenure::kafka
