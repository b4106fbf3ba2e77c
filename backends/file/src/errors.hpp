// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <tenure/error.hpp>

namespace tenure::file {

/// What a failed system call means to whoever runs the program: what we did, where, why it failed, what would help.
Error system_error(const std::string& doing, const std::string& path, int error_number);

}  // namespace tenure::file
