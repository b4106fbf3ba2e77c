// SPDX-License-Identifier: Apache-2.0
// Goal: a logger of spdlog gets what tenure says, at its level and whole. Method: a sink that writes to a text.
#include <tenure/spdlog.hpp>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>
#include <string>

namespace tenure {
namespace {

class Spdlog : public testing::Test {
 protected:
  std::ostringstream out_;
  std::shared_ptr<spdlog::logger> logger_ = [this] {
    auto logger = std::make_shared<spdlog::logger>("tenure", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
    logger->set_pattern("%l: %v");
    return logger;
  }();
};

TEST_F(Spdlog, ALineKeepsItsLevelItsMessageAndItsFields) {
  logger_->set_level(spdlog::level::debug);
  const auto log = spdlog_log(logger_);
  tell(log, Level::debug, "renewed", {});
  tell(log, Level::info, "elected", {{"election", "jobs"}, {"token", "41"}});
  tell(log, Level::warning, "slow", {});
  tell(log, Level::error, "lost", {});
  EXPECT_EQ(out_.str(), "debug: renewed\ninfo: elected election=jobs token=41\nwarning: slow\nerror: lost\n");
}

TEST_F(Spdlog, TheLoggersLevelDecides) {
  logger_->set_level(spdlog::level::warn);
  tell(spdlog_log(logger_), Level::info, "elected", {});
  EXPECT_EQ(out_.str(), "");
}

/// spdlog formats what looks like a pattern; a message from a store is none.
TEST_F(Spdlog, BracesAreNoPattern) {
  tell(spdlog_log(logger_), Level::error, "{} {0:d} %v {", {{"election", "{}"}});
  EXPECT_EQ(out_.str(), "error: {} {0:d} %v { election={}\n");
}

TEST_F(Spdlog, AMissingLoggerIsRefused) { EXPECT_THROW(spdlog_log(nullptr), std::invalid_argument); }

}  // namespace
}  // namespace tenure
