// SPDX-License-Identifier: Apache-2.0
// Texts that stand for something else: environment variables, files, durations.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/clock.hpp>

namespace tenure {

/// A message that says why there is no value.
struct Refusal {
  std::string message;
};
template <class T>
using Valued = std::variant<T, Refusal>;

/// The text itself, or the environment variable that "${NAME}" stands for.
Valued<std::string> expanded(const std::string& text);

/// The secret in the file of this path, which must be absolute.
Valued<std::string> secret_at(const std::string& path);

/// The duration that a text such as "750ms" or "8s" stands for, exactly. At most an hour.
Valued<Clock::Duration> duration_of(const std::string& text);

}  // namespace tenure
