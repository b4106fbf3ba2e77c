// SPDX-License-Identifier: Apache-2.0
// Goal: in etcd a former leader writes nothing. Method: the transaction of fence.hpp in a real server, and the tokens
// of two leaders.
#include <tenure/fence.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "server.hpp"
#include "two_leaders.hpp"

namespace tenure::fence {
namespace {

class EtcdFence : public testing::Test {
 protected:
  void SetUp() override {
    TENURE_NEEDS_ETCD();
    server_.emplace();
  }
  /// Writes as a leader does. False if a later one has written.
  bool write(Token token, const std::string& value) {
    const auto file = server_->directory() / "txn";
    const auto fence = etcd_value(token);
    std::ofstream(file) << "value(\"fence\") > \"" << fence << "\"\n\n\nput fence " << fence << "\nput sum " << value
                        << "\n\n";
    return server_->ctl("txn <" + file.string()).starts_with("FAILURE");
  }
  std::string sum() { return server_->ctl("get sum --print-value-only"); }

 private:
  std::optional<etcd::test::Server> server_;
};

TEST_F(EtcdFence, AFormerLeaderWritesNothing) {
  const auto [stale, later] = test::two_leaders();
  EXPECT_TRUE(write(stale, "10"));
  EXPECT_TRUE(write(stale, "11"));
  EXPECT_TRUE(write(later, "20"));
  EXPECT_FALSE(write(stale, "12"));
  EXPECT_EQ(sum(), "20\n");
}

TEST_F(EtcdFence, TokensAreComparedToTheLastDigit) {
  EXPECT_TRUE(write({9}, "9"));
  EXPECT_TRUE(write({10}, "10")) << "as numbers, not as words";
  EXPECT_TRUE(write({9'007'199'254'740'993}, "greater"));
  EXPECT_FALSE(write({9'007'199'254'740'992}, "less"));
  EXPECT_FALSE(write({11}, "11"));
  EXPECT_TRUE(write({UINT64_MAX}, "greatest"));
  EXPECT_FALSE(write({UINT64_MAX - 1}, "less"));
  EXPECT_EQ(sum(), "greatest\n");
}

}  // namespace
}  // namespace tenure::fence
