// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: log lines that can do no harm.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/export.hpp>
#include <tenure/log.hpp>

namespace tenure {

/// Makes untrusted text fit for a log line: what controls a terminal, or the order of text, becomes '?'. `cap`: bytes.
TENURE_EXPORT std::string printable(std::string_view untrusted, std::size_t cap = 256);

/// "message name=value name=value"
TENURE_EXPORT std::string one_line(const LogLine& line);

/// Writes a line to stderr in one piece, so that those of several threads do not mix. What stderr cannot take at once
/// is dropped. `line` ends with '\n'.
TENURE_EXPORT void write_to_stderr(std::string_view line) noexcept;

/// Hands a line to `log`, or to stderr if `log` is empty. The texts are made printable() first. What `log` throws
/// is ignored.
TENURE_EXPORT void tell(const Log& log, Level level, std::string_view message,
                        std::initializer_list<std::pair<std::string_view, std::string_view>> fields) noexcept;

}  // namespace tenure
