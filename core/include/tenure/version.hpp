// SPDX-License-Identifier: Apache-2.0
// Which tenure this is. The macros are the headers' version, version() is the library's. With a shared library the two
// may differ in the patch; the library's name sees to the rest. The version is written down here alone: CMake reads it.
#pragma once
#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

#define TENURE_VERSION "0.1.0"
#define TENURE_VERSION_NUMBER 100  ///< For the preprocessor: 10203 stands for 1.2.3.

namespace tenure {

/// The version of the library that is linked, such as "1.2.3". Any thread may call it.
TENURE_EXPORT const char* version() noexcept;

}  // namespace tenure
