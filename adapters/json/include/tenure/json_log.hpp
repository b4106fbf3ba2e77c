// SPDX-License-Identifier: Apache-2.0
// Log lines as JSON.
#pragma once
#include <string>

#include <tenure/json_export.hpp>
#include <tenure/log.hpp>

namespace tenure {

/// A line as one JSON object, without a line's end: {"level":"info","message":"...","election":"...","token":"..."}.
/// It is ASCII: what a terminal would obey is escaped. Bytes that are not UTF-8 become U+FFFD. There is no time in it:
/// who collects the lines adds it (journald, Docker).
TENURE_JSON_EXPORT std::string to_json(const LogLine& line);

/// A Log that writes one such object per line to stderr, if it is of this level or above. A line that stderr cannot
/// take at once is dropped.
TENURE_JSON_EXPORT Log json_log(Level least = Level::info);

}  // namespace tenure
