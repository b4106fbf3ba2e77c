// SPDX-License-Identifier: Apache-2.0
// Commands that look once: status, is-leader.
#pragma once
#include "place.hpp"

namespace tenure::tool {

/// Asks the store again until it answers, for so long.
Sight look(Backend& backend, Clock::Duration patience);

}  // namespace tenure::tool
