// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/export.hpp>

namespace tenure {

enum class Level { debug, info, warning, error };

/// One line for your logger. No secrets; what came from the store is capped and free of control characters.
struct LogLine {
  Level level{};
  std::string message{};
  std::vector<std::pair<std::string, std::string>> fields{};  ///< "election", "token", "store", ...
};

/// A library does not choose a logger: hand in a function. Called from any thread of ours, several at a time, and
/// never with a lock of ours held; must not block, and what it throws is swallowed.
/// Empty: warnings and errors go to stderr, one line each; a line that stderr cannot take at once is dropped.
using Log = std::function<void(const LogLine&)>;

/// A Log that says nothing.
inline void no_log(const LogLine&) noexcept {}

TENURE_EXPORT std::string_view to_string(Level) noexcept;

}  // namespace tenure
