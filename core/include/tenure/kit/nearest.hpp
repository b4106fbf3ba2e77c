// SPDX-License-Identifier: Apache-2.0
// For messages about a name that nobody knows.
#pragma once
#include <span>
#include <string_view>

#include <tenure/export.hpp>

namespace tenure {

/// The one that was probably meant: that with the least edits, if they are few. Empty: none is near.
TENURE_EXPORT std::string_view nearest(std::string_view given, std::span<const std::string_view> names);

}  // namespace tenure
