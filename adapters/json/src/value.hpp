// SPDX-License-Identifier: Apache-2.0
// Texts that stand for something else: environment variables, files, durations.
#pragma once
#include <string>
#include <string_view>

#include <tenure/clock.hpp>
#include <tenure/result.hpp>

namespace tenure {

// The message of an error is the rest of a sentence about the value.

/// The text itself, or the environment variable that "${NAME}" stands for.
Result<std::string> expanded(const std::string& text);

/// The secret in the file of this path, which must be absolute.
Result<std::string> secret_at(const std::string& path);

/// The duration that a text such as "750ms" or "8s" stands for, exactly. At most an hour.
Result<Clock::Duration> duration_of(const std::string& text);

}  // namespace tenure
