// SPDX-License-Identifier: Apache-2.0
// Goal: `tenure run` runs a command only while it leads, hands on its exit code and its signals, and leaves nothing
// behind, whoever is stopped or killed. Method: starts tools over a file store, and looks at what their commands write.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <tenure/file.hpp>

#include "eventually.hpp"
#include "fake_server.hpp"
#include "messages.hpp"
#include "process_tree.hpp"
#include "run_tool.hpp"
#include "within.hpp"

namespace tenure::test {
namespace {

void ask_to_step_down(const Scratch& store, const std::string& by = "test", const std::string& why = "to see it") {
  const auto backend = file::open(store.path(), "e", {}, no_log);
  EXPECT_FALSE(backend->request_step_down(by, why, within(std::chrono::minutes(1))));
}

TEST_F(RunTool, TheExitCodeIsTheCommands) {
  const std::pair<Words, int> commands[] = {{{"true"}, 0},
                                            {{"sh", "-c", "exit 3"}, 3},
                                            {{"sh", "-c", "kill -KILL $$"}, 128 + SIGKILL},
                                            {{"sh", "-c", "kill -TERM $$"}, 128 + SIGTERM},
                                            {{"/nowhere/program"}, 127},
                                            {{directory_.path().string()}, 126}};
  for (const auto& [command, code] : commands) {
    Process run(words({}, command));
    EXPECT_EQ(run.ended(), code) << command.back();
    EXPECT_EQ(mentions(run.err(), "cannot run " + command[0]), code == 127 || code == 126) << run.err();
  }
}

/// That outlives exec(), and the kernel then reaps children without a word.
TEST_F(RunTool, AParentThatIgnoresSigchldDoesNoHarm) {
  Process run(ignoring("CHLD", shell({"--on-ousted", "echo ousted"}, "exit 3")));
  EXPECT_EQ(run.ended(), 3) << run.err();
  EXPECT_EQ(run.out(), "ousted\n");
}

TEST_F(RunTool, InAPipelineStdinAndStdoutAreTheCommands) {
  const auto input = files_.file("input", "one\ntwo\n");
  std::string line;
  for (const auto& word : words({}, {"cat"})) line += " '" + word + "'";
  Process pipeline({"sh", "-c", "cat |" + line + " | cat"}, {.in = input});
  EXPECT_EQ(pipeline.ended(), 0) << pipeline.err();
  EXPECT_EQ(pipeline.out(), "one\ntwo\n");
}

TEST_F(RunTool, AClosedStdinStaysClosed) {
  Process closed(shell({}, "[ -e /proc/$$/fd/0 ] && echo open || echo closed"), {.stdin_closed = true});
  EXPECT_EQ(closed.ended(), 0) << closed.err();
  EXPECT_EQ(closed.out(), "closed\n");
}

TEST_F(RunTool, TheCommandFindsItsTenureInTheEnvironment) {
  Process one(shell({"--id", "ann"}, "echo $TENURE_ELECTION $TENURE_ID $TENURE_STORE; echo $TENURE_TOKEN"));
  EXPECT_EQ(one.ended(), 0) << one.err();
  const auto start = "e ann " + url() + "\n";
  ASSERT_EQ(one.out().substr(0, start.size()), start);
  Process two(shell({}, "echo $TENURE_TOKEN"));
  EXPECT_EQ(two.ended(), 0);
  EXPECT_GT(std::stoull(two.out()), std::stoull(one.out().substr(start.size()))) << "tokens rise";
}

TEST_F(RunTool, TheCommandCannotReadTheToolsEnvironment) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, who may become another user";
  for (const auto& each : {directory_.path(), files_.path()}) ASSERT_EQ(::chown(each.c_str(), 65534, 65534), 0);
  Words line{"setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"};
  const auto ours = shell(
      {},
      "t=$(awk '/PPid/ {print $2}' /proc/$PPID/status); cat /proc/$PPID/environ /proc/$t/environ; echo $t | grep -c .");
  line.insert(line.end(), {"env", "TENURE_URL=redis://u:" + canary + "@h"});
  line.insert(line.end(), ours.begin(), ours.end());
  Process run(line);
  EXPECT_EQ(run.ended(), 0) << run.err();
  EXPECT_EQ(run.out(), "1\n") << "it knows who the tool is, and can read nothing of it";
}

TEST_F(RunTool, SignalsReachTheCommand) {
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1}) {
    Process run(shell({"--grace", "1h"},
                      "for s in TERM INT QUIT HUP USR1; do trap \"echo got $s; exit 10\" $s; done; "
                      "echo ready; " +
                          for_ever));
    ASSERT_TRUE(begun(run)) << run.err();
    run.signal(signal);
    EXPECT_EQ(run.ended(), 10) << ::strsignal(signal);
    EXPECT_EQ(run.out().substr(0, 10), "ready\ngot ");
  }
}

TEST_F(RunTool, ACommandThatIgnoresSigtermIsKilled) {
  Process run(shell({"--grace", "100ms"}, stubborn()));
  const Stubborn both(*this);
  run.signal(SIGTERM);
  EXPECT_EQ(run.ended(), 128 + SIGKILL) << run.err();
  both.expect_ended();
}

TEST_F(RunTool, WhatTheCommandLeavesBehindIsEnded) {
  Process run(shell({"--grace", "100ms"}, "setsid sh -c 'trap \"\" TERM; echo $$ >" + path("left") + "; " + for_ever +
                                              "' & until [ -s " + path("left") + " ]; do sleep 0.01; done; exit 4"));
  EXPECT_EQ(run.ended(), 4);
  EXPECT_FALSE(alive(told("left")));
}

#define TENURE_NEEDS_CONTROL_GROUP()                 \
  if (const tool::ControlGroup group; group.there()) \
    group.remove();                                  \
  else                                               \
    GTEST_SKIP() << "needs a control group (cgroup v2, Linux 5.14): run as root, or in a unit with Delegate=yes"

std::filesystem::path group_of(const Process& run) {
  const tool::ControlGroup ours;
  ours.remove();
  return std::filesystem::path(ours.path()).replace_filename("tenure-" + std::to_string(run.pid()));
}

/// As a process that forks faster than anybody can list it: only its group tells that it belongs to the command. So we
/// put one there that is not below the tool.
TEST_F(RunTool, WhatStandsInItsControlGroupIsKilledWithIt) {
  TENURE_NEEDS_CONTROL_GROUP();
  Process run(shell({"--grace", "100ms"}, "trap '' TERM; grep ^0: /proc/self/cgroup; " + for_ever));
  ASSERT_TRUE(begun(run)) << run.err();
  EXPECT_TRUE(run.out().ends_with("/tenure-" + std::to_string(run.pid()) + "\n")) << run.out();
  const auto theirs = group_of(run);
  Process other({"sh", "-c", for_ever});
  std::ofstream(theirs / "cgroup.procs") << other.pid() << std::flush;
  EXPECT_TRUE(other.running());
  run.signal(SIGTERM);
  EXPECT_EQ(run.ended(), 128 + SIGKILL) << run.err();
  EXPECT_EQ(other.ended(), -SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(theirs)) << "the group is left behind";
}

TEST_F(RunTool, TheControlGroupIsRemovedAlsoIfOneOfTheTwoIsKilled) {
  TENURE_NEEDS_CONTROL_GROUP();
  for (const bool supervisor_dies : {true, false}) {
    Process run(shell({}, "echo runs; " + for_ever));
    ASSERT_TRUE(begun(run)) << run.err();
    const auto theirs = group_of(run);
    EXPECT_TRUE(std::filesystem::exists(theirs));
    ::kill(supervisor_dies ? supervisor_of(run) : run.pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(theirs); })) << supervisor_dies;
  }
}

TEST_F(RunTool, AControlGroupThatAnotherToolMadeIsNotRemoved) {
  TENURE_NEEDS_CONTROL_GROUP();
  const tool::ControlGroup theirs;  // of this very process, so that the name is the same
  const auto inside = theirs.path() + "/busy";
  ASSERT_TRUE(std::filesystem::create_directory(inside));
  const tool::ControlGroup ours;
  EXPECT_FALSE(ours.there());
  ASSERT_TRUE(std::filesystem::remove(inside));
  ours.remove();
  EXPECT_TRUE(std::filesystem::exists(theirs.path()));
  theirs.remove();
}

/// Before words: where the tool can make no control group.
Words without_control_group() {
  const tool::ControlGroup group;
  if (!group.there()) return {};
  group.remove();
  return {"unshare", "--mount", "sh", "-c", "umount -l -a -t cgroup2; exec \"$@\"", "sh"};
}

/// Root without CAP_KILL stands for a user, and a user for the root of sudo: the one may not signal the other.
TEST_F(RunTool, ACommandOfAnotherUserThatCannotBeKilledIsReportedOnce) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, who may become another user";
  if (Process({"unshare", "--mount", "true"}).ended() != 0) GTEST_SKIP() << "needs CAP_SYS_ADMIN, to hide the groups";
  auto line = without_control_group();
  const Words weak{"setpriv", "--bounding-set=-kill", "--inh-caps=-kill"},
      other{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", "echo $$; exec sleep 120"};
  line.insert(line.end(), weak.begin(), weak.end());
  const auto run_other = words({"--grace", "100ms"}, other);
  line.insert(line.end(), run_other.begin(), run_other.end());
  Process run(line);
  ASSERT_TRUE(begun(run)) << run.err();
  const auto command = run.out().substr(0, run.out().size() - 1);
  run.signal(SIGTERM);
  const auto told = "process " + command + " of the command belongs to another user";
  EXPECT_TRUE(eventually([&] { return mentions(run.err(), told); })) << run.err();
  EXPECT_TRUE(alive(std::stoi(command)));
  ::kill(std::stoi(command), SIGKILL);
  EXPECT_EQ(run.ended(), 128 + SIGKILL) << run.err();
  EXPECT_EQ(run.err().find(told), run.err().rfind(told)) << "once";
}

TEST_F(RunTool, TwoToolsTakeTurns) {
  const auto turn = "mkdir " + path("busy") + " || echo overlap; rmdir " + path("busy") + "; echo done";
  Process a(shell({}, turn)), b(shell({}, turn));
  EXPECT_EQ(a.ended(), 0) << a.err();
  EXPECT_EQ(b.ended(), 0) << b.err();
  EXPECT_EQ(a.out() + b.out(), "done\ndone\n");
}

TEST_F(RunTool, ASignalEndsTheWait) {
  Process leader(shell({}, "echo leads; " + for_ever));
  ASSERT_TRUE(begun(leader)) << leader.err();
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) {
    Process waiter(shell({}, "echo wrong"));
    supervisor_of(waiter);
    waiter.signal(signal);
    EXPECT_EQ(waiter.ended(), 128 + signal);
    EXPECT_EQ(waiter.out(), "");
  }
  EXPECT_TRUE(leader.running());
}

TEST_F(RunTool, ASignalThatIsIgnoredDoesNotEndTheWait) {
  Process leader(shell({}, "echo leads; " + for_ever));
  ASSERT_TRUE(begun(leader)) << leader.err();
  Process waiter(ignoring("HUP,INT", shell({}, "echo wrong")));
  supervisor_of(waiter);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) waiter.signal(signal);
  EXPECT_EQ(waiter.ended(), 128 + SIGTERM) << waiter.err();
}

TEST_F(RunTool, WhoeverWaitsSaysForWhomOnce) {
  Process leader(shell({"--id", "ann"}, "echo leads; " + for_ever));
  ASSERT_TRUE(begun(leader)) << leader.err();
  Process waiter(words({}, {"true"}));
  EXPECT_TRUE(eventually([&] { return mentions(waiter.err(), "waits: ann leads"); })) << waiter.err();
  leader.signal(SIGTERM);
  EXPECT_EQ(waiter.ended(), 0);
  EXPECT_EQ(waiter.err().find("waits: ann"), waiter.err().rfind("waits: ann")) << waiter.err();
  EXPECT_FALSE(mentions(waiter.err(), "\x1b")) << "lines, and nothing for a terminal to obey";
}

TEST_F(RunTool, TheWaitHasALimit) {
  Process leader(shell({}, "echo leads; " + for_ever));
  ASSERT_TRUE(begun(leader)) << leader.err();
  EXPECT_EQ(Process(shell({"--wait", "50ms"}, "echo wrong")).ended(), 75);
}

TEST_F(RunTool, AStoreThatIsAwayAtTheStartHasAnExitCode) {
  Process run(
      tool({"run", "-e", "e", "--store", "redis://u:" + canary + "@127.0.0.1:1", "--wait", "1s", "--", "true"}));
  EXPECT_EQ(run.ended(), 69) << run.err();
  EXPECT_FALSE(mentions(run.err(), canary));
}

TEST_F(RunTool, AWrongLineHasAnExitCode) {
  EXPECT_EQ(Process(words({"--grace", "soon"}, {"true"})).ended(), 64);
  for (const auto* option : {"--http", "--stall-after"}) {
    Process empty(words({option, ""}, {"true"}));
    EXPECT_EQ(empty.ended(), 64) << option;
    EXPECT_NE(empty.err().find(std::string(option) + ": is empty"), std::string::npos) << empty.err();
  }
  EXPECT_EQ(Process(words({"--on-lost", "cry"}, {"true"})).ended(), 64);
  EXPECT_EQ(Process(words({}, {})).ended(), 64);
  EXPECT_EQ(Process(tool({"run", "-e", "e", "--store", "file://relative", "--", "true"})).ended(), 78);
}

/// The terminal stops a command that uses it in the background. It would keep the lead for ever.
TEST_F(RunTool, ASignalThatIsHandedOnReachesACommandThatIsStopped) {
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) {
    std::filesystem::remove(path("child"));
    Process run(shell({}, "echo $$ >" + path("child") + "; kill -STOP $$; " + for_ever));
    const auto child = told("child");
    ASSERT_TRUE(eventually([&] { return stands_still(child); }));
    run.signal(signal);
    EXPECT_EQ(run.ended(), 128 + signal) << run.err();
  }
}

/// on_elected sees to it that the supervisor may make no process, until SIGTERM comes.
TEST_F(RunTool, OnOustedRunsAlsoIfThereWasNoProcessForTheCommand) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, whose limit on processes does not hold; it becomes another user";
  const Words other{"setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=+dac_override",
                    "--ambient-caps=+dac_override"};
  const auto as_another = [&](const Words& line) {
    Words all = other;
    all.insert(all.end(), line.begin(), line.end());
    return all;
  };
  if (Process(as_another(tool({"--version"}))).ended() != 0) GTEST_SKIP() << "this root may not become another user";
  for (const auto& each : {directory_.path(), files_.path()}) ASSERT_EQ(::chown(each.c_str(), 65534, 65534), 0);
  const auto on_elected =
      "echo elected; g=$PPID; prlimit --pid $g --nproc=1:; "
      "sh -c \"trap 'prlimit --pid $g --nproc=500:; exit' TERM; echo >" +
      path("ready") + "; " + for_ever + "\" >/dev/null 2>&1 & until [ -e " + path("ready") + " ]; do sleep 0.01; done";
  Process run(as_another(shell({"--on-elected", on_elected, "--on-ousted", "echo ousted"}, "echo runs")));
  EXPECT_EQ(run.ended(), 126) << run.err();
  EXPECT_TRUE(mentions(run.err(), "no process for sh")) << run.err();
  EXPECT_EQ(run.out(), "elected\nousted\n") << run.err();
}

/// Of a command that is being ended, since the lead is lost. It is not to run again.
TEST_F(RunTool, AHangUpWhileTheCommandEndsEndsTheToolToo) {
  Process run(shell({"--grace", "1h"}, "trap 'echo ends' TERM; trap 'exit 7' HUP; echo begun; " + for_ever));
  ASSERT_TRUE(begun(run)) << run.err();
  ask_to_step_down(directory_);
  ASSERT_TRUE(eventually([&] { return mentions(run.out(), "ends\n"); })) << run.err();
  run.signal(SIGHUP);
  EXPECT_EQ(run.ended(), 7) << run.err();
  EXPECT_EQ(run.out(), "begun\nends\n");
}

/// Another program may be gone when a service manager starts the tool again.
TEST_F(RunTool, AnAddressThatIsTakenIsNoMistakeOfTheLine) {
  const FakeServer other([](const std::string&) { return FakeServer::Answer{}; });
  Process run(shell({"--http", other.address()}, "echo wrong"));
  EXPECT_EQ(run.ended(), 70) << run.err();
  EXPECT_EQ(run.out(), "");
}

TEST_F(RunTool, CommandsBeforeAndAfter) {
  Process run(shell({"--on-elected", "echo elected", "--on-ousted", "echo ousted"}, "echo runs; exit 5"));
  EXPECT_EQ(run.ended(), 5) << run.err();
  EXPECT_EQ(run.out(), "elected\nruns\nousted\n");
  Process failing(shell({"--on-elected", "exit 6"}, "echo runs"));
  EXPECT_EQ(failing.ended(), 6) << "then the command is not run";
  EXPECT_EQ(failing.out(), "");
}

TEST_F(RunTool, AStepDownEndsTheCommandAndItIsRunAgainLater) {
  Process run(shell({"--term", "2s"}, "echo $TENURE_TOKEN; " + for_ever));
  ASSERT_TRUE(begun(run)) << run.err();
  ask_to_step_down(directory_);
  EXPECT_TRUE(eventually([&] { return lines(run.out()) >= 2; })) << run.err();
  Process once(shell({"--once"}, "echo once; " + for_ever));
  run.signal(SIGTERM);
  EXPECT_EQ(run.ended(), 128 + SIGTERM);
  ASSERT_TRUE(begun(once)) << once.err();
  ask_to_step_down(directory_);
  EXPECT_EQ(once.ended(), 79) << once.err();
}

TEST_F(RunTool, ItSaysThatItLeadsAndWhoAskedItToStepDownAndWhy) {
  Process run(shell({"--once"}, "echo runs; " + for_ever));
  ASSERT_TRUE(begun(run)) << run.err();
  EXPECT_TRUE(mentions(run.err(), "info: elected election=e token=")) << run.err();
  ask_to_step_down(directory_, "ops", "upgrade");
  EXPECT_EQ(run.ended(), 79);
  EXPECT_TRUE(mentions(run.err(), "step_down, asked by ops: upgrade")) << run.err();
}

TEST_F(RunTool, WhatItSaysIsAsMuchAndInTheFormThatIsAskedFor) {
  Process quiet(shell({"--log", "warning"}, "true"));
  EXPECT_EQ(quiet.ended(), 0);
  EXPECT_EQ(quiet.err(), "");
  Process json(shell({"--log", "json"}, "true"));
  EXPECT_EQ(json.ended(), 0);
  std::istringstream said(json.err());
  std::size_t objects = 0;
  for (std::string line; std::getline(said, line); ++objects) {
    EXPECT_TRUE(line.starts_with(R"({"level":"info","message":")")) << line;
    EXPECT_TRUE(mentions(line, R"("election":"e")")) << line;
  }
  EXPECT_GE(objects, 2U) << json.err();
  EXPECT_EQ(Process(shell({"--log", "loud"}, "true")).ended(), 64);
}

// ---- whoever is stopped or killed ----

TEST_F(RunTool, AToolThatIsStoppedForLongerThanTheTermHasNoCommandWhenTheNextOneLeads) {
  // The term is shorter than the grace.
  const auto configuration = with_a_wide_margin(files_, url());
  Process stopped(shell({"-c", configuration, "--grace", "1h", "--once"}, stubborn()));
  const Stubborn both(*this);
  Process next(shell({"-c", configuration}, witness()));
  stopped.signal(SIGSTOP);
  EXPECT_EQ(next.ended(), 0) << next.err();
  EXPECT_EQ(next.out(), "looked\n");
  both.expect_ended();
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.ended(), 79) << stopped.err();
}

TEST_F(RunTool, AToolThatIsKilledHasNoCommandWhenTheNextOneLeads) {
  for (const bool supervisor_too : {false, true}) {
    Process killed(shell({"--term", "30s", "--grace", "100ms"}, stubborn()));
    const Stubborn both(*this);
    Process next(shell({"--term", "30s"}, witness()));
    supervisor_of(next);
    const auto supervisor = supervisor_of(killed);
    if (supervisor_too) ::kill(supervisor, SIGSTOP);  // the kernel continues it when the tool dies
    killed.signal(SIGKILL);
    EXPECT_EQ(next.ended(), 0) << next.err();
    EXPECT_EQ(next.out(), "looked\n") << supervisor_too;
    both.expect_ended();
    std::filesystem::remove(path("child"));
    std::filesystem::remove(path("grandchild"));
  }
}

TEST_F(RunTool, AToolThatIsKilledInALaterTenureHasNoCommandWhenTheNextOneLeads) {
  const auto configuration = with_a_wide_margin(files_, url());
  Process killed(shell({"-c", configuration, "--grace", "100ms"}, stubborn()));
  for (const auto* name : {"child", "grandchild"}) {
    told(name);
    std::filesystem::remove(path(name));
  }
  ask_to_step_down(directory_);
  const Stubborn both(*this);
  Process next(shell({"-c", configuration}, witness()));
  supervisor_of(next);
  killed.signal(SIGKILL);
  EXPECT_EQ(next.ended(), 0) << next.err();
  EXPECT_EQ(next.out(), "looked\n") << TENURE_PROMISE;
  both.expect_ended();
}

/// So the watchdog of a service manager ends it.
TEST_F(RunTool, AToolThatIsAbortedLeavesNothingBehind) {
  auto line = shell({"--term", "30s", "--grace", "100ms"}, stubborn());
  line.insert(line.begin(), {"sh", "-c", "ulimit -c 0; exec \"$@\"", "sh"});
  Process run(line);
  const Stubborn both(*this);
  run.signal(SIGABRT);
  EXPECT_EQ(run.ended(), -SIGABRT);
  EXPECT_TRUE(eventually([&] { return !alive(both.child) && !alive(both.grandchild); }));
}

TEST_F(RunTool, ASupervisorThatIsKilledTakesTheCommandWithIt) {
  Process run(shell({"--term", "30s"}, stubborn()));
  const Stubborn both(*this);
  ::kill(supervisor_of(run), SIGKILL);
  EXPECT_EQ(run.ended(), 70) << run.err();
  both.expect_ended();
}

TEST_F(RunTool, ASupervisorThatIsStoppedIsContinued) {
  Process run(shell({"--term", "30s", "--grace", "100ms"}, stubborn()));
  const Stubborn both(*this);
  ::kill(supervisor_of(run), SIGSTOP);
  run.signal(SIGTERM);
  EXPECT_EQ(run.ended(), 128 + SIGKILL);
  both.expect_ended();
}

}  // namespace
}  // namespace tenure::test
