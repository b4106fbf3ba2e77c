// SPDX-License-Identifier: Apache-2.0
// Checks of a store, as text to look into.
#pragma once
#include <string>

#include <tenure/check.hpp>

#include "messages.hpp"

namespace tenure::test {

/// "fine: …", "note: … | remedy", "WRONG: … | remedy", a line each.
inline std::string text_of(const Checks& checks) {
  std::string out;
  for (const auto& [is, what, remedy] : checks)
    out += (is == Check::Is::fine       ? "fine: "
            : is == Check::Is::doubtful ? "note: "
                                        : "WRONG: ") +
           what + (remedy.empty() ? "" : " | " + remedy) + "\n";
  return out;
}

}  // namespace tenure::test

#define EXPECT_TOLD(text, part) EXPECT_TRUE(tenure::test::mentions(text, part)) << (text)
