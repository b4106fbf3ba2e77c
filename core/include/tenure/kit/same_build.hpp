// SPDX-License-Identifier: Apache-2.0
// Objects whose std::string or containers differ from the library's would crash. So each demands a symbol that names
// both settings of libstdc++, and the linker tells which one was demanded.
#pragma once
#include <cstddef>

#include <tenure/export.hpp>

#if defined(_GLIBCXX_DEBUG)
#define TENURE_BUILT_DEBUG(name) name##_with_GLIBCXX_DEBUG
#else
#define TENURE_BUILT_DEBUG(name) name##_without_GLIBCXX_DEBUG
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define TENURE_BUILT TENURE_BUILT_DEBUG(built_with_GLIBCXX_USE_CXX11_ABI_0_and)
#else
#define TENURE_BUILT TENURE_BUILT_DEBUG(built_with_GLIBCXX_USE_CXX11_ABI_1_and)
#endif

namespace tenure {

extern TENURE_EXPORT const char TENURE_BUILT;
[[gnu::used]] inline const char* const same_build = &TENURE_BUILT;

}  // namespace tenure
