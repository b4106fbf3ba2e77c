// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include <tenure/error.hpp>
#include <tenure/kafka.hpp>

#include "closable_log.hpp"
#include "errors.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Creates a topic by a handle of its own, so that admin calls never meet a candidate's handle. It blocks for 5 s at
/// most. Throws std::runtime_error, redacted, if librdkafka refuses the properties.
std::optional<Error> create_topic(const Properties& properties, const Target& target, const CreateTopic& how,
                                  ClosableLog& log);

}  // namespace tenure::kafka
