// SPDX-License-Identifier: Apache-2.0
// What is said to a caller whose arguments are refused.
#pragma once
#include <stdexcept>
#include <string>

namespace tenure::test {

/// The message of the std::invalid_argument that the call throws. "accepted": it throws none.
template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace tenure::test
