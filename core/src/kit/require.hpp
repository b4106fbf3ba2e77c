// SPDX-License-Identifier: Apache-2.0
// Assertions of what a function REQUIRES.
#pragma once
#include <cassert>

/// What a function REQUIRES, and what must follow. It is looked at in debug builds and in those of our tests: where
/// NDEBUG is not defined. Otherwise it costs nothing.
#define TENURE_REQUIRE(holds) assert(holds)
