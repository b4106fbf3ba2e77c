// SPDX-License-Identifier: Apache-2.0
// A record and a request to step down, as they stand in their keys. Pure.
#pragma once
#include <optional>
#include <string>

#include <tenure/conditional_store.hpp>

namespace tenure::etcd {

/// JSON of ASCII alone, a record's with the token first. The same record is always the same text.
std::string text_of(const Record& record);
std::string text_of(const StepDown& request);

/// What stands in the two keys; nothing: there is no such key. `key` is the record's, for messages. Fault::corrupt says
/// that the record is none of ours. It sets no clock.
Result<Read> read_of(const std::optional<std::string>& record, const std::optional<std::string>& step_down,
                     const std::string& key);

}  // namespace tenure::etcd
