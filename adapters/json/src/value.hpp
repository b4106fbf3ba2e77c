// SPDX-License-Identifier: Apache-2.0
// What stands for something else: environment variables, files, durations.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/clock.hpp>

namespace tenure {

/// Why there is no value: a message.
struct Refusal {
  std::string message;
};
template <class T>
using Valued = std::variant<T, Refusal>;

/// The text itself, or the environment variable that "${NAME}" stands for.
Valued<std::string> expanded(const std::string& text);

/// A regular file's content, at most max_document_bytes. A refusal goes on where a sentence about the file began.
Valued<std::string> content_of(const std::filesystem::path& path);

/// As content_of(), without one newline at its end. The path must be absolute.
Valued<std::string> secret_of(const std::string& path);

/// "750ms", "8s": exact, at most an hour.
Valued<Clock::Duration> duration_of(const std::string& text);

}  // namespace tenure
