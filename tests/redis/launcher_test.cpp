// SPDX-License-Identifier: Apache-2.0
// Goal: docker/redis starts a server that is fit to elect on. Method: an election by each URL that it tells.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support.hpp"

namespace tenure::redis::test {
namespace {

TEST(RedisLauncher, ItsServerElectsByEitherUrlWithoutAWarning) {
  const char* const tcp = std::getenv("TENURE_REDIS");
  const char* const socket = std::getenv("TENURE_REDIS_SOCKET");
  if (!tcp || !socket) GTEST_SKIP() << "needs the server of docker/redis: TENURE_REDIS and TENURE_REDIS_SOCKET";
  const auto election = "launcher-" + std::to_string(boot_clock().unix_ms());
  Lines lines;
  const auto a = store(from_url(tcp), election, lines.log()), b = store(from_url(socket), election, lines.log());
  auto last = record(1, 11);
  last.released = true;
  EXPECT_TRUE(swap(*a, std::nullopt, last));
  EXPECT_EQ(read(*b).record->beat, 11u) << "both are the same server";
  EXPECT_TRUE(lines.all().empty()) << lines.all()[0];
}

}  // namespace
}  // namespace tenure::redis::test
