// SPDX-License-Identifier: Apache-2.0
// Tries again what a busy server may spoil.
#pragma once
#include <functional>

namespace tenure::test {

/// For what a busy server may spoil, where neither we nor the machine's lateness are the reason: it must succeed once
/// in a few tries. What breaks a promise fails all the same.
inline bool once(const std::function<bool()>& succeeds) {
  for (int tries = 0; tries < 5; ++tries)
    if (succeeds()) return true;
  return false;
}

}  // namespace tenure::test
