// SPDX-License-Identifier: Apache-2.0
// What an exception says.
#pragma once
#include <exception>
#include <string>

namespace tenure {

/// The message of the exception that is being handled.
inline std::string what_was_thrown() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

}  // namespace tenure
