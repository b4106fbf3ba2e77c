// SPDX-License-Identifier: Apache-2.0
// Goal: log lines as JSON. Method: known lines; nlohmann/json reads them back.
#include <tenure/json_log.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <nlohmann/json.hpp>
#include <tenure/kit/logging.hpp>

namespace tenure {
namespace {

TEST(JsonLog, ALineIsOneObjectInTheOrderThatPeopleRead) {
  EXPECT_EQ(to_json({Level::info, "elected", {{"election", "jobs"}, {"token", "41"}}}),
            R"({"level":"info","message":"elected","election":"jobs","token":"41"})");
}

TEST(JsonLog, WhatIsNotUtf8StillMakesAnObject) {
  const auto read = nlohmann::json::parse(to_json({Level::error, "a \"quoted\"\xff\\", {{"election", "caf\xc3\xa9"}}}));
  EXPECT_EQ(read["message"], "a \"quoted\"\xef\xbf\xbd\\");
  EXPECT_EQ(read["election"], "caf\xc3\xa9");
}

TEST(JsonLog, WhatATerminalWouldObeyIsEscaped) {
  const auto text = to_json({Level::info, "a\x7f\x1b[2J\xc2\x9b\xe2\x80\xae", {{"by\x7f", "b\x7f"}}});
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
  EXPECT_EQ(nlohmann::json::parse(text)["by\x7f"], "b\x7f");
}

TEST(JsonLog, ItWritesToStderrWhatIsImportantEnough) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(ends[0], STDERR_FILENO);
  tell(json_log(), Level::debug, "renewed", {});
  tell(json_log(), Level::warning, "slow", {{"election", "jobs"}});
  ::dup2(kept, STDERR_FILENO);
  std::array<char, 1000> text{};
  const auto first = ::recv(ends[1], text.data(), text.size(), MSG_DONTWAIT);
  EXPECT_EQ(std::string(text.data(), first > 0 ? static_cast<std::size_t>(first) : 0),
            "{\"level\":\"warning\",\"message\":\"slow\",\"election\":\"jobs\"}\n");
  EXPECT_LT(::recv(ends[1], text.data(), text.size(), MSG_DONTWAIT), 0) << "nothing else";
  for (const int fd : {kept, ends[0], ends[1]}) ::close(fd);
}

/// Who sleeps over a pipe that is full would hold up whoever writes more than this.
TEST(JsonLog, NoLineIsLongerThanAPipeTakesAtOnce) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(ends[0], STDERR_FILENO);
  tell(json_log(), Level::warning, std::string(10'000, '\xff'), {{"election", std::string(200, '\xff')}});
  write_to_stderr(std::string(10'000, 'x'));
  ::dup2(kept, STDERR_FILENO);
  std::array<char, 20'000> text{};
  const auto read = [&] {
    const auto size = ::recv(ends[1], text.data(), text.size(), MSG_DONTWAIT);
    return std::string(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  };
  const auto json = read(), plain = read();
  EXPECT_LE(json.size(), std::size_t{PIPE_BUF});
  EXPECT_EQ(nlohmann::json::parse(json)["level"], "warning");
  EXPECT_EQ(plain, std::string(PIPE_BUF - 1, 'x') + "\n");
  for (const int fd : {kept, ends[0], ends[1]}) ::close(fd);
}

}  // namespace
}  // namespace tenure
