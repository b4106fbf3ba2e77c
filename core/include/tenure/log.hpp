// SPDX-License-Identifier: Apache-2.0
// Log lines, and the logger that takes them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

enum class Level { debug, info, warning, error };  ///< Each is greater than the one before.

/// One line for your logger. It holds no secret. Text that came from the store is shortened, and has no
/// control characters.
struct LogLine {
  Level level{};
  std::string message{};
  std::vector<std::pair<std::string, std::string>> fields{};  ///< "election", "token", "store", ...
};

/// Your logger. Any thread of ours may call it, several at a time, and never with a lock of ours held. What it throws
/// is ignored. REQUIRES: it does not block.
/// If it is empty, warnings and errors go to stderr, one line each. A line that stderr cannot take at once is dropped,
/// if stderr is a pipe, a socket or a terminal. A file always seems to take it, so give a leader whose stderr is a file
/// on a disk that may stall a log of its own.
using Log = std::function<void(const LogLine&)>;

/// A Log that writes to stderr as an empty one does, but everything of this level and above.
TENURE_EXPORT Log stderr_log(Level least);

/// A Log that writes nothing.
inline void no_log(const LogLine&) noexcept {}

TENURE_EXPORT std::string_view to_string(Level) noexcept;  ///< Its name: "warning".

}  // namespace tenure
