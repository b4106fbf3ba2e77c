// SPDX-License-Identifier: Apache-2.0
// Text into a tree, with limits, and without the parser's own messages: those quote what they stumbled over.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/json.hpp>

namespace tenure {

/// Throws InvalidDocument for what is no JSON, too long or too deep. A key that stands twice is added to `findings`.
nlohmann::json parse_json(std::string_view text, std::vector<Finding>& findings);

/// RFC 6901: one step further. A key that does not look like a name is not repeated: it may be a secret.
std::string step(const std::string& pointer, std::string_view key);

/// For messages, as in step().
std::string shown(std::string_view key);

}  // namespace tenure
