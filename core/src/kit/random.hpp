// SPDX-License-Identifier: Apache-2.0
// Random numbers of the kernel, and numbers that a seed repeats.
#pragma once
#include <cstdint>

#include <tenure/clock.hpp>

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

/// Between half of the pause and all of it.
inline Clock::Duration jittered(Clock::Duration pause, std::uint64_t random) {
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return pause - Clock::Duration(static_cast<Clock::rep>(random % (half + 1)));
}

}  // namespace tenure
