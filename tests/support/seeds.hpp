// SPDX-License-Identifier: Apache-2.0
// One way to name a seed, for every simulation and whatever else draws its faults: TENURE_SEED=N runs this one alone.
#pragma once
#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace tenure::test {

/// TENURE_SEED. Throws std::invalid_argument if it is no number.
inline std::optional<std::uint64_t> wanted_seed() {
  const char* text = std::getenv("TENURE_SEED");
  if (text == nullptr) return std::nullopt;
  const std::string wanted = text;
  std::uint64_t seed = 0;
  const auto* end = wanted.data() + wanted.size();
  const auto read = std::from_chars(wanted.data(), end, seed);
  if (read.ec != std::errc{} || read.ptr != end)
    throw std::invalid_argument("TENURE_SEED=\"" + wanted + "\": a seed is a whole number, such as TENURE_SEED=7");
  return seed;
}

/// The command that repeats the present test with this seed.
inline std::string again(std::uint64_t seed) {
  auto out = "TENURE_SEED=" + std::to_string(seed) + " " + std::filesystem::read_symlink("/proc/self/exe").string();
  if (const auto* test = testing::UnitTest::GetInstance()->current_test_info())
    out += " --gtest_filter=" + std::string(test->test_suite_name()) + "." + test->name();
  return out;
}

/// A sanitizer sees the same lines with each seed, ten times as slowly.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t one_seed_of = 8;
#else
inline constexpr std::uint64_t one_seed_of = 1;
#endif

/// Calls run(seed) with the seeds from 1 to `count`, or with the wanted one, up to the first failure, which names the
/// command. Returns whether all of them ran: only then may a test count what they have shown.
template <class Run>
bool for_each_seed(std::uint64_t count, Run run) {
  const auto wanted = wanted_seed();
  const auto most = wanted ? 1 : (count + one_seed_of - 1) / one_seed_of;
  for (std::uint64_t n = 1; n <= most; ++n) {
    const auto seed = wanted.value_or(n);
    SCOPED_TRACE("again: " + again(seed));
    run(seed);
    if (testing::Test::HasFailure()) return false;
  }
  return !wanted && most == count;
}

}  // namespace tenure::test
