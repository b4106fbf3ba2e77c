// SPDX-License-Identifier: Apache-2.0
// Random numbers of the kernel, and numbers that a seed repeats.
#pragma once
#include <cstdint>

namespace tenure {

/// Asks the kernel, because a generator of the process would give a restored or cloned process the same numbers.
std::uint64_t random_u64();

/// The next number of a sequence that a seed repeats, by splitmix64. `state` begins as the seed.
inline std::uint64_t next_random(std::uint64_t& state) {
  auto z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace tenure
