// SPDX-License-Identifier: Apache-2.0
#include <tenure/version.hpp>

namespace tenure {

const char* version() noexcept { return TENURE_VERSION; }

}  // namespace tenure
