// SPDX-License-Identifier: Apache-2.0
// For those who write a store or a backend: what several of them say and check alike.
#pragma once
#include <chrono>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// The error of a forked child that asks what its parent opened. `opened` is such as "the store" or a path.
TENURE_EXPORT Error forked_child(std::string_view opened);

/// The longest term that a stored record may have, of whatever version. It is far above max_term, which a later version
/// may raise. A longer one shows that somebody else wrote the record, and it could overflow a Clock::Duration.
inline constexpr std::chrono::hours longest_stored_term{24 * 365};

}  // namespace tenure
