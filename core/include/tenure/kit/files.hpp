// SPDX-License-Identifier: Apache-2.0
// For those who write a backend or an adapter: files that a user names.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

#include <tenure/export.hpp>
#include <tenure/result.hpp>

namespace tenure {

/// The content of a regular file of at most `most` bytes. The error's message is the rest of a sentence about the
/// file: "is not a regular file". It does not wait for a device or a pipe.
TENURE_EXPORT Result<std::string> content_of(const std::filesystem::path& path, std::size_t most);

/// The same, without one newline at its end. A secret is not empty, and has no NUL byte in it.
TENURE_EXPORT Result<std::string> secret_of(const std::filesystem::path& path, std::size_t most);

}  // namespace tenure
