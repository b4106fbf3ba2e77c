// SPDX-License-Identifier: Apache-2.0
// A Lua script, and the name by which a server keeps it.
#pragma once
#include <string_view>

namespace tenure::redis {

/// Constant text: keys and everything else come by argument. `sha1` is the server's name for it.
struct Script {
  std::string_view text, sha1;
};

}  // namespace tenure::redis
