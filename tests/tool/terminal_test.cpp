// SPDX-License-Identifier: Apache-2.0
// Goal: at a terminal the command of `tenure run` stands in the foreground while it runs, and the terminal's own job
// afterwards; Ctrl-Z does not hold it up, and a job in the background takes no terminal. Method: a terminal that the
// test holds the other end of.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "messages.hpp"
#include "run_tool.hpp"

namespace tenure::test {
namespace {

/// A session of its own at a terminal of its own.
class Seat {
 public:
  explicit Seat(Words words) : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(master_);
    ::unlockpt(master_);
    const std::string name = ::ptsname(master_);
    const winsize size{.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setsid();
    const int terminal = ::open(name.c_str(), O_RDWR);  // becomes the session's
    for (const int stream : {0, 1, 2}) ::dup2(terminal, stream);
    ::execvp(argv[0], argv.data());
    ::_exit(125);
  }
  ~Seat() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(master_);
  }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  void types(const std::string& text) const {
    EXPECT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool shows(const std::string& text) {
    return eventually([&] {
      char more[4096];
      for (ssize_t got = 0; (got = ::read(master_, more, sizeof more)) > 0;)
        seen_.append(more, static_cast<std::size_t>(got));
      return mentions(seen_, text);
    });
  }
  const std::string& seen() const { return seen_; }

 private:
  int master_;
  pid_t pid_{};
  std::string seen_;
};

std::string quoted(const Words& words) {
  std::string out;
  for (const auto& word : words) {
    out += " '";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += "'";
  }
  return out.substr(1);
}

using AtATerminal = RunTool;

TEST_F(AtATerminal, TheCommandStandsInTheForegroundAndThenOurJobAgain) {
  const auto line = quoted(
      shell({}, "trap 'echo interrupted; exit 5' INT; echo ready; read typed; echo \"got $typed\"; " + for_ever));
  Seat seat({"sh", "-c", line + "; echo code $?; read more; echo \"and $more\""});
  ASSERT_TRUE(seat.shows("ready")) << seat.seen();
  seat.types("words\n");
  EXPECT_TRUE(seat.shows("got words")) << "it may read: " << seat.seen();
  seat.types("\x03");
  EXPECT_TRUE(seat.shows("interrupted")) << "the terminal's signals reach it: " << seat.seen();
  EXPECT_TRUE(seat.shows("code 5")) << seat.seen();
  seat.types("further\n");
  EXPECT_TRUE(seat.shows("and further")) << "the shell may read again: " << seat.seen();
}

TEST_F(AtATerminal, CtrlZDoesNotStopTheCommand) {
  const auto line = quoted(shell({}, "trap 'exit 5' INT; echo ready; read typed; echo \"got $typed\"; " + for_ever));
  Seat seat({"sh", "-c", line + "; echo code $?"});
  ASSERT_TRUE(seat.shows("ready")) << seat.seen();
  seat.types("\x1a");
  ASSERT_TRUE(seat.shows("^Z")) << seat.seen();
  seat.types("words\n");
  EXPECT_TRUE(seat.shows("got words")) << seat.seen();
  seat.types("\x03");
  EXPECT_TRUE(seat.shows("code 5")) << seat.seen();
}

/// The tool waits in the foreground first, and is elected in the background. Its command tells that by a pipe, so that
/// the shell reads afterwards, and ends with the test.
TEST_F(AtATerminal, ACommandOfAJobInTheBackgroundTakesNoTerminal) {
  const auto started = path("started"), hold = path("hold");
  ASSERT_EQ(::mkfifo(started.c_str(), 0600) + ::mkfifo(hold.c_str(), 0600), 0);
  const int held = ::open(hold.c_str(), O_RDWR | O_CLOEXEC);
  Process leader(shell({"--id", "ann"}, "echo leads; " + for_ever));
  ASSERT_TRUE(begun(leader)) << leader.err();
  const auto line = quoted(shell({}, "exec 3<" + hold + "; echo >" + started + "; read end <&3"));
  Seat seat({"sh", "-c",
             "set -m; " + line + "; echo stopped; bg; read x <" + started +
                 "; read typed; echo \"the shell got $typed\"; wait; echo code $?"});
  ASSERT_TRUE(seat.shows("waits: ann leads")) << seat.seen();
  seat.types("\x1a");
  ASSERT_TRUE(seat.shows("stopped")) << seat.seen();
  leader.signal(SIGTERM);
  seat.types("words\n");
  EXPECT_TRUE(seat.shows("the shell got words")) << seat.seen();
  ::close(held);
  EXPECT_TRUE(seat.shows("code ")) << seat.seen();
}

TEST_F(AtATerminal, ACommandInTheBackgroundThatWantsTheTerminalCausesAMessage) {
  const auto line = quoted(shell({}, "read typed"));
  Seat seat({"sh", "-c", "set -m; " + line + " & read typed; kill %1; wait; echo over"});
  EXPECT_TRUE(seat.shows("the command is stopped, for it uses the terminal")) << seat.seen();
  seat.types("words\n");
  EXPECT_TRUE(seat.shows("over")) << seat.seen();
}

TEST_F(AtATerminal, ACommandThatWantsATerminalOtherThanOurStdinCausesAMessageAndEndsByCtrlC) {
  const auto line = quoted(shell({}, "read typed </dev/tty"));
  Seat seat({"sh", "-c", "set -m; " + line + " </dev/null; echo code $?"});
  EXPECT_TRUE(seat.shows("uses a terminal that is not the tool's stdin")) << seat.seen();
  seat.types("\x03");
  EXPECT_TRUE(seat.shows("code 130")) << seat.seen();
  const auto remedy = quoted(words({}, {"setsid", "--wait", "sh", "-c", "read typed </dev/tty || exit 6"}));
  Seat mended({"sh", "-c", "set -m; " + remedy + " </dev/null; echo code $?"});
  EXPECT_TRUE(mended.shows("code 6")) << "then it has no terminal: " << mended.seen();
}

TEST_F(AtATerminal, APagerOfOurJobThatWantsTheTerminalStopsItselfAlone) {
  const auto line = quoted(shell({}, "echo $PPID >" + path("supervisor") + "; " + for_ever));
  const auto pager = "sh -c 'echo $$ >" + path("pager") + "; until [ -s " + path("supervisor") +
                     " ]; do sleep 0.01; done; read key </dev/tty'";
  Seat seat({"sh", "-c", "set -m; " + line + " | " + pager});
  const auto pager_is = told("pager");
  const auto supervisor = contents("/proc/" + std::to_string(told("supervisor")) + "/status");
  const pid_t tool = std::stoi(supervisor.substr(supervisor.find("PPid:") + 5));
  ASSERT_TRUE(eventually([&] { return stands_still(pager_is); })) << seat.seen();
  EXPECT_FALSE(stands_still(tool)) << "the supervisor would end the command";
}

TEST_F(AtATerminal, ASupervisorThatIsKilledLeavesTheTerminalToOurJob) {
  const auto line = quoted(shell({}, "echo $PPID >" + path("supervisor") + "; " + for_ever));
  Seat seat({"sh", "-c", line + "; echo code $?; read more; echo \"and $more\""});
  ::kill(told("supervisor"), SIGKILL);
  ASSERT_TRUE(seat.shows("code 70")) << seat.seen();
  seat.types("further\n");
  EXPECT_TRUE(seat.shows("and further")) << seat.seen();
}

}  // namespace
}  // namespace tenure::test
