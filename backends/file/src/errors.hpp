// SPDX-License-Identifier: Apache-2.0
// What a failed system call means for elections.
#pragma once
#include <string>

#include <tenure/error.hpp>

namespace tenure::file {

/// Explains a failed system call to those who run the program: what we did, where, why it failed, and what would help.
Error system_error(const std::string& doing, const std::string& path, int error_number);

}  // namespace tenure::file
