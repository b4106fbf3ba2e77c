// SPDX-License-Identifier: Apache-2.0
// Finds the name that was probably meant, for a message about one that is not known.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// The known name that differs by the fewest edits. Empty if all differ by many.
TENURE_EXPORT std::string_view nearest(std::string_view given, std::span<const std::string_view> names);

/// ", did you mean \"x\"?", or nothing.
TENURE_EXPORT std::string did_you_mean(std::string_view given, std::span<const std::string_view> names);

/// "a, b, c".
TENURE_EXPORT std::string listed(std::span<const std::string_view> names);

}  // namespace tenure
