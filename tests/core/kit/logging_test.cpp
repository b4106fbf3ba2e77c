// SPDX-License-Identifier: Apache-2.0
// Goal: what goes wrong is seen, also where nobody asked to; and saying it harms nobody.
// Method: descriptor 2 is replaced by a socket that keeps the bounds of every write, by a full pipe and by a closed
// one.
#include <tenure/log.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tenure/kit/logging.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/observer.hpp>

#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;

class Logging : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()), 0);
    kept_ = ::dup(STDERR_FILENO);
    ASSERT_GE(::dup2(ends_[0], STDERR_FILENO), 0);
  }
  void TearDown() override {
    ::dup2(kept_, STDERR_FILENO);
    for (const auto fd : {kept_, ends_[0], ends_[1]}) ::close(fd);
  }

  /// What was written, one text for each write(2).
  std::vector<std::string> written() {
    std::vector<std::string> out;
    std::array<char, 8192> buffer{};
    for (ssize_t n = 0; (n = ::recv(ends_[1], buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;)
      out.emplace_back(buffer.data(), static_cast<std::size_t>(n));
    return out;
  }

 private:
  std::array<int, 2> ends_{};
  int kept_{-1};
};

TEST_F(Logging, WarningsAndErrorsGoToStderrIfNobodyTakesThem) {
  const Log nobody;
  tell(nobody, Level::debug, "d", {});
  tell(nobody, Level::info, "i", {});
  tell(nobody, Level::warning, "no table", {{"election", "reports"}, {"token", "41"}});
  tell(nobody, Level::error, "worse", {});
  EXPECT_EQ(written(), (std::vector<std::string>{"tenure: warning: no table election=reports token=41\n",
                                                 "tenure: error: worse\n"}));
}

TEST_F(Logging, ALineIsPrintableAndCapped) {
  tell({}, Level::error, "two\nlines\x1b[2J " + std::string(5000, 'x'), {{"election", std::string(5000, 'e') + "\n"}});
  const auto lines = written();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].size(), 2400u);
  EXPECT_TRUE(lines[0].starts_with("tenure: error: two?lines?[2J xxx")) << lines[0];
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), '\n'), 1);
}

TEST_F(Logging, TheControlCharactersBeyondAsciiAreNotPrintableAndLettersAre) {
  EXPECT_EQ(printable("a\xc2\x9b J"), "a?? J") << "CSI, as ESC [ is";
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0"), "????\xc2\xa0");
  EXPECT_EQ(printable("\xc3\x9b \xe2\x82\x9b \xc2"), "\xc3\x9b \xe2\x82\x9b \xc2") << "bytes of other characters";
}

TEST_F(Logging, ACharacterThatNoLongerFitsIsLeftOutAsAWhole) {
  EXPECT_EQ(printable("a\xc3\xa9", 2), "a...");
  EXPECT_EQ(printable("a\xf0\x9f\x92\xa1"
                      "b",
                      4),
            "a...");
  EXPECT_EQ(printable("a\xf0\x9f\x92\xa1"
                      "b",
                      5),
            "a\xf0\x9f\x92\xa1...");
  EXPECT_EQ(printable("\x80\x80\x80\x80\x80", 4), "\x80\x80\x80\x80...") << "which is no UTF-8";
  EXPECT_EQ(printable("\xc3\xa9", 0), "...");
}

TEST_F(Logging, ALogGetsAllLinesAndStderrNone) {
  std::vector<LogLine> taken;
  const Log take = [&](const LogLine& line) { taken.push_back(line); };
  tell(take, Level::info, "a\tb", {{"election", "jo\nbs"}});
  tell(take, Level::error, "c", {});
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].level, Level::info);
  EXPECT_EQ(taken[0].message, "a?b");
  EXPECT_EQ(taken[0].fields, (std::vector<std::pair<std::string, std::string>>{{"election", "jo?bs"}}));
  EXPECT_EQ(written(), std::vector<std::string>{});
}

TEST_F(Logging, AStderrLogWritesWhatIsImportantEnough) {
  tell(stderr_log(Level::info), Level::debug, "d", {});
  tell(stderr_log(Level::info), Level::info, "elected", {{"election", "jobs"}});
  tell(stderr_log(Level::error), Level::warning, "w", {});
  EXPECT_EQ(written(), std::vector<std::string>{"tenure: info: elected election=jobs\n"});
}

TEST_F(Logging, NoLogIsSilent) {
  tell(no_log, Level::error, "e", {});
  EXPECT_EQ(written(), std::vector<std::string>{});
}

TEST_F(Logging, ALogThatThrowsHarmsNobody) {
  tell([](const LogLine&) { throw std::runtime_error("disk full"); }, Level::error, "e", {});
  tell([](const LogLine&) { throw 7; }, Level::error, "e", {});  // NOLINT(hicpp-exception-baseclass): the case
}

TEST_F(Logging, LinesOfThreadsDoNotMix) {
  std::vector<std::jthread> threads;
  for (const char c : {'a', 'b', 'c'})
    threads.emplace_back([c] {
      for (int i = 0; i < 20; ++i) tell({}, Level::warning, std::string(500, c), {{"election", "jobs"}});
    });
  threads.clear();
  const auto lines = written();
  EXPECT_GT(lines.size(), 0u);
  for (const auto& line : lines) EXPECT_EQ(line, "tenure: warning: " + std::string(500, line[17]) + " election=jobs\n");
}

TEST_F(Logging, AReaderThatSleepsHoldsUpNobody) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const std::string page(4096, '.');
  ASSERT_EQ(::fcntl(pipe[1], F_SETFL, O_NONBLOCK), 0);
  while (::write(pipe[1], page.data(), page.size()) > 0) continue;
  ASSERT_EQ(::fcntl(pipe[1], F_SETFL, 0), 0);
  ASSERT_GE(::dup2(pipe[1], STDERR_FILENO), 0);
  tell({}, Level::error, "a write would now block for ever", {});
  for (const auto fd : pipe) ::close(fd);
}

TEST_F(Logging, AReaderThatHasGoneKillsNobodyAndErrnoIsKept) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  ASSERT_GE(::dup2(pipe[1], STDERR_FILENO), 0);
  for (const auto fd : pipe) ::close(fd);
  errno = ENOENT;
  tell({}, Level::error, "a write would now raise SIGPIPE", {});
  EXPECT_EQ(errno, ENOENT);
  ::close(STDERR_FILENO);
  tell({}, Level::error, "nowhere", {});
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(Logging, AManagerWithoutAnyHookSaysWhatIsWrong) {
  auto backend = std::make_shared<test::ScriptedBackend>();
  backend->throwing(true);
  LeaderManager manager(backend, Timing::of(10s), {}, backend->clock);
  manager.start();
  std::vector<std::string> lines;
  EXPECT_TRUE(test::eventually([&] { return !(lines = written()).empty(); }));
  manager.stop();
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines[0].starts_with("tenure: warning: unreachable: ")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(" election=scripted\n")) << lines[0];
}

TEST_F(Logging, AnErrorThatTheHookHearsAtOnceIsNotLoggedTwice) {
  auto backend = std::make_shared<test::ScriptedBackend>();
  backend->throwing(true);
  Hooks hooks;
  hooks.error = [&](const Error&) { backend->note("error"); };
  LeaderManager manager(backend, Timing::of(10s), hooks, backend->clock);
  manager.start();
  EXPECT_TRUE(backend->await("error"));
  manager.stop();
  EXPECT_EQ(written(), std::vector<std::string>{});
}

TEST_F(Logging, AnErrorThatMustWaitForAnotherHookIsLoggedAtOnce) {
  auto backend = std::make_shared<test::ScriptedBackend>();
  Hooks hooks;
  hooks.elected = [](const Elected& e) { wait_out({boot_clock(), boot_clock().now() + 1h, e.stop}); };  // leads there
  hooks.eligible = [&] {
    if (!backend->diary().empty()) throw std::runtime_error("asked too often");
    return true;
  };
  hooks.error = [&](const Error&) { backend->note("error"); };
  const auto timing = Timing::of(10s);
  LeaderManager manager(backend, timing, hooks, backend->clock);
  manager.start();
  ASSERT_TRUE(manager.await_leadership(10s));
  ASSERT_TRUE(backend->clock.await_parked(1));
  backend->clock.advance(timing.renew);
  std::vector<std::string> lines;
  EXPECT_TRUE(test::eventually([&] { return !(lines = written()).empty(); }));
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines[0].starts_with("tenure: warning: hook threw: eligible() threw: asked too often")) << lines[0];
  manager.stop();
}

TEST_F(Logging, AnObserverWithoutACalleeSaysWhatIsWrong) {
  auto scripted = std::make_shared<test::ScriptedBackend>();
  scripted->see(Unknown{{Fault::misconfigured, "there is no table"}});
  const Observer observer(scripted, Timing::of(10s), {}, scripted->clock);
  std::vector<std::string> lines;
  EXPECT_TRUE(test::eventually([&] { return !(lines = written()).empty(); }));
  EXPECT_EQ(lines, std::vector<std::string>{"tenure: warning: misconfigured: there is no table election=scripted\n"});
}

}  // namespace
}  // namespace tenure
