// SPDX-License-Identifier: Apache-2.0
// Texts that stand for something else: environment variables, files, durations.
#pragma once
#include <filesystem>
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

/// The content of a regular file, at most max_document_bytes. A refusal is the rest of a sentence about the file:
/// "is empty".
Valued<std::string> content_of(const std::filesystem::path& path);

/// As content_of(), without one newline at its end. The path must be absolute.
Valued<std::string> secret_of(const std::string& path);

/// The duration that a text such as "750ms" or "8s" stands for, exactly. At most an hour.
Valued<Clock::Duration> duration_of(const std::string& text);

}  // namespace tenure
