// SPDX-License-Identifier: Apache-2.0
// For messages about a name that nobody knows.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <tenure/export.hpp>

namespace tenure {

/// The one that was probably meant: that with the least edits, if they are few. Empty: none is near.
TENURE_EXPORT std::string_view nearest(std::string_view given, std::span<const std::string_view> names);

/// ", did you mean \"x\"?", or nothing.
TENURE_EXPORT std::string did_you_mean(std::string_view given, std::span<const std::string_view> names);

/// "a, b, c".
TENURE_EXPORT std::string listed(std::span<const std::string_view> names);

}  // namespace tenure
