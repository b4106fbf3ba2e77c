// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls: the target that TENURE_FUZZ_TARGET names.
#include <cstdint>

#include "fuzz.hpp"

namespace {

const tenure::fuzz::Target& chosen() {
  const char* const name = std::getenv("TENURE_FUZZ_TARGET");
  for (const auto& target : tenure::fuzz::targets)
    if (name && std::string_view(name) == target.name) return target;
  std::fprintf(stderr, "TENURE_FUZZ_TARGET names no target of this program\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto& target = chosen();
  target.check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
