// SPDX-License-Identifier: Apache-2.0
// The answer to a child of fork.
#include <tenure/kit/store.hpp>

#include <string>

namespace tenure {

Error forked_child(std::string_view opened) {
  return {Fault::misconfigured, "this process was forked from the one that opened " + std::string(opened) +
                                    ", so it has no part in that one's elections; open it again after the fork"};
}

}  // namespace tenure
