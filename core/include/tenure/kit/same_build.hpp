// SPDX-License-Identifier: Apache-2.0
// Objects whose std::string or containers differ from the library's would crash. So each demands a symbol that names
// both settings of libstdc++, and the linker names the one that was demanded.
#pragma once
#include <cstddef>

#include <tenure/export.hpp>

namespace tenure {

/// The library has the one of its own build.
extern TENURE_EXPORT const char built_without_GLIBCXX_DEBUG_by_CXX11_ABI_1, built_without_GLIBCXX_DEBUG_by_CXX11_ABI_0,
    built_with_GLIBCXX_DEBUG_by_CXX11_ABI_1, built_with_GLIBCXX_DEBUG_by_CXX11_ABI_0;

#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define TENURE_BUILT_BY(settings) settings##_by_CXX11_ABI_0
#else
#define TENURE_BUILT_BY(settings) settings##_by_CXX11_ABI_1
#endif
#if defined(_GLIBCXX_DEBUG)
#define TENURE_BUILT TENURE_BUILT_BY(built_with_GLIBCXX_DEBUG)
#else
#define TENURE_BUILT TENURE_BUILT_BY(built_without_GLIBCXX_DEBUG)
#endif

[[gnu::used]] inline const char* const same_build = &TENURE_BUILT;

}  // namespace tenure
