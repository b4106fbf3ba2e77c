// SPDX-License-Identifier: Apache-2.0
// The version that the library was built as.
#include <tenure/kit/same_build.hpp>
#include <tenure/version.hpp>

namespace tenure {

const char TENURE_BUILT = 0;

namespace {

/// "1.2.3" as 10203.
constexpr int number_of(const char* version) {
  int all = 0, part = 0;
  for (; *version; ++version) {
    if (*version == '.') all = (all + part) * 100, part = 0;
    if (*version != '.') part = part * 10 + (*version - '0');
  }
  return all + part;
}
static_assert(number_of("1.2.3") == 10203 && number_of("12.0.34") == 120034);
static_assert(number_of(TENURE_VERSION) == TENURE_VERSION_NUMBER, "version.hpp tells of two versions");

}  // namespace

const char* version() noexcept { return TENURE_VERSION; }

}  // namespace tenure
