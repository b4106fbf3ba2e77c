// SPDX-License-Identifier: Apache-2.0
// Turns text into a tree, within limits. The parser's own messages are not used, because they quote the text.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/json.hpp>

namespace tenure {

/// Throws InvalidDocument if the text is not JSON, too long or nested too deeply. A key that stands twice is added
/// to `findings`.
nlohmann::json parse_json(std::string_view text, std::vector<Finding>& findings);

/// The pointer (RFC 6901), one step further. A key that does not look like a name is not shown: it may be a secret.
std::string step(const std::string& pointer, std::string_view key);

/// The key for a message, hidden as in step().
std::string shown(std::string_view key);

}  // namespace tenure
