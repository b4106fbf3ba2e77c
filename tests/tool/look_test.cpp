// SPDX-License-Identifier: Apache-2.0
// Goal: status, observe, is-leader and config say what is so, by their output and by their exit code.
// Method: runs the tool beside a candidate of this process, over the file store.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <tenure/file.hpp>
#include <tenure/kit/descriptor.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/version.hpp>

#include "eventually.hpp"
#include "messages.hpp"
#include "process.hpp"
#include "schema.hpp"

namespace tenure::test {
namespace {

using Json = nlohmann::json;

class Look : public ::testing::Test {
 protected:
  /// A candidate that leads.
  struct Leader {
    explicit Leader(const std::filesystem::path& directory, const std::string& name = "ann")
        : manager(file::open(directory, "e", {.name = name, .address = "10.0.0.7:80"}, no_log), file::presets().fast,
                  {.log = no_log}) {
      manager.start();
      token = manager.await_leadership(std::chrono::minutes(1));
    }
    LeaderManager manager;
    std::optional<Token> token;
  };

  std::vector<std::string> words(const std::string& command, std::vector<std::string> more = {}) const {
    std::vector<std::string> all{command, "-e", "e", "--store", "file://" + directory_.path().string()};
    all.insert(all.end(), more.begin(), more.end());
    return tool(all);
  }

  /// What is said of each line, and its exit code.
  static void expect_code(int code, const std::vector<std::vector<std::string>>& lines) {
    for (const auto& line : lines) {
      Process run(tool(line));
      EXPECT_EQ(run.ended(), code) << (line.empty() ? "" : line.back()) << ": " << run.err();
      EXPECT_EQ(run.err().empty(), code < 64);
    }
  }

  Scratch directory_;
};

/// As text and as JSON.
TEST_F(Look, StatusSaysThatNobodyLeadsOrWho) {
  const auto said = [&](int code) {
    Process text(words("status")), json(words("status", {"--json"}));
    EXPECT_EQ(text.ended(), code) << text.err();
    EXPECT_EQ(json.ended(), code) << json.err();
    return std::pair(text.out(), Json::parse(json.out()));
  };
  const auto [nobody, vacant] = said(3);
  EXPECT_EQ(nobody, "nobody leads\n");
  EXPECT_EQ(vacant.at("version"), 1);
  EXPECT_EQ(vacant.at("election"), "e");
  EXPECT_EQ(vacant.at("state"), "vacant");
  const Leader leader(directory_);
  ASSERT_TRUE(leader.token);
  const auto [who, led] = said(0);
  EXPECT_TRUE(who.starts_with("ann leads at 10.0.0.7:80, tenure " TENURE_VERSION ", token " +
                              std::to_string(leader.token->value) + ", for "));
  EXPECT_EQ(led.at("state"), "led");
  EXPECT_EQ(led.at("leader").at("name"), "ann");
  EXPECT_EQ(led.at("leader").at("version"), tenure::version());
  EXPECT_EQ(led.at("leader").at("token"), std::to_string(leader.token->value));
  EXPECT_GT(led.at("leader").at("remaining_ms"), 0);
}

TEST_F(Look, JsonIsAsItsSchemaSays) {
  const auto said = [](std::vector<std::string> line) {
    line.emplace_back("--json");
    Process process(tool(line));
    process.ended();
    return process.out();
  };
  const auto url = "file://" + directory_.path().string();
  std::vector<std::string> documents{said({"status", "-e", "e", "--store", url})};
  const Leader leader(directory_);
  documents.push_back(said({"status", "-e", "e", "--store", url}));
  documents.push_back(said({"status", "--all", "--store", url}));
  documents.push_back(said({"status", "-e", "e", "--store", "redis://127.0.0.1:1", "--timeout", "100ms"}));
  EXPECT_EQ(Json::parse(documents.back()).at("state"), "unknown");
  expect_as_schema("sight", documents);
}

TEST_F(Look, StatusSaysThatTheStoreDoesNotAnswer) {
  const auto url = "redis://u:" + canary + "@127.0.0.1:1";
  Process status(tool({"status", "-e", "e", "--store", url, "--timeout", "200ms"}));
  EXPECT_EQ(status.ended(), 4);
  EXPECT_EQ(status.out().substr(0, 8), "unknown:");
  EXPECT_FALSE(mentions(status.out() + status.err(), canary));
}

TEST_F(Look, StatusShowsAllElections) {
  const Leader leader(directory_);
  const std::string odd = "a/b~", longest(200, '/');
  for (const auto& name : {odd, longest}) {
    LeaderManager gone(file::open(directory_.path(), name, {.name = "bob"}, no_log), file::presets().fast,
                       {.log = no_log});
    gone.start();
    EXPECT_TRUE(gone.await_leadership(std::chrono::minutes(1)));
  }
  std::filesystem::create_directory(directory_ / "%2fnot ours");
  const std::vector<std::string> all{"status", "--all", "--store", "file://" + directory_.path().string()};
  Process status(tool(all));
  EXPECT_EQ(status.ended(), 3) << status.err();
  EXPECT_TRUE(mentions(status.out(), "\na/b~" + std::string(196, ' ') + "  nobody leads; last written "));
  EXPECT_TRUE(mentions(status.out(), "\ne" + std::string(199, ' ') + "  ann leads at 10.0.0.7:80, tenure "));
  auto json = all;
  json.insert(json.end(), {"--json", "--limit", "1"});
  Process first(tool(json));
  EXPECT_EQ(first.ended(), 3);
  EXPECT_TRUE(mentions(first.err(), "more than 1 elections")) << first.err();
  const auto said = Json::parse(first.out());
  EXPECT_EQ(said.at("election"), longest);
  EXPECT_EQ(said.at("state"), "vacant");
  EXPECT_GE(said.at("age_ms"), 0);
}

TEST_F(Look, StatusSaysWhereItCannotShowAll) {
  for (const auto* url : {"kafka://127.0.0.1:1", "memory:"}) {
    Process status(tool({"status", "--all", "--store", url}));
    EXPECT_EQ(status.ended(), 78) << url;
    EXPECT_TRUE(mentions(status.err(), "In this build these do: file")) << status.err();
  }
  const auto missing = directory_ / "missing";
  EXPECT_EQ(Process(tool({"status", "--all", "--store", "file://" + missing.string()})).ended(), 78);
  EXPECT_FALSE(std::filesystem::exists(missing)) << "a look made it";
  EXPECT_EQ(Process(tool({"status", "--all", "--group", "g", "--store", "memory:"})).ended(), 64) << "one of the two";
  Process files(tool({"status", "--group", "g", "--store", "file://" + directory_.path().string()}));
  EXPECT_EQ(files.ended(), 78);
  EXPECT_TRUE(mentions(files.err(), "keeps no groups of elections")) << files.err();
  EXPECT_EQ(Process(tool({"status", "--group", "g", "--store", "memory:"})).ended(), 3);
}

TEST_F(Look, IsLeaderAnswersByItsExitCode) {
  const Leader leader(directory_);
  EXPECT_EQ(Process(words("is-leader", {"--id", "ann"})).ended(), 0);
  EXPECT_EQ(Process(words("is-leader", {"--id", "bob"})).ended(), 1);
}

/// A limit of processes holds for all but root.
TEST_F(Look, IsLeaderSaysThatNoThreadIsLeft) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer starts a thread of its own";
#endif
  auto line = tool({"is-leader", "--http", "127.0.0.1:9"});
  line.insert(line.begin(), {"prlimit", "--nproc=0"});
  if (::geteuid() == 0) line.insert(line.begin(), {"setpriv", "--reuid=65534", "--clear-groups"});
  Process run(line);
  if (run.ended() == 126) GTEST_SKIP() << "the tool stands where nobody else may go";
  EXPECT_EQ(run.ended(), 4) << run.err();
  EXPECT_TRUE(mentions(run.err(), "no thread is left")) << run.err();
}

TEST_F(Look, ObservePrintsALinePerChangeUntilASignalThatIsNotIgnored) {
  Process observe(ignoring("HUP,INT", words("observe", {"--json"})));
  EXPECT_TRUE(eventually([&] { return mentions(observe.out(), "\"vacant\""); })) << observe.err();
  {
    const Leader leader(directory_);
    EXPECT_TRUE(eventually([&] { return mentions(observe.out(), "\"name\":\"ann\""); }));
  }
  EXPECT_TRUE(eventually([&] { return observe.out().ends_with("\"vacant\",\"leader\":null}\n"); }));
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) observe.signal(signal);
  EXPECT_EQ(observe.ended(), 128 + SIGTERM);
}

bool waits_in(pid_t pid, const std::string& function) {
  const auto tasks = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task");
  return std::any_of(begin(tasks), end(tasks),
                     [&](const auto& task) { return mentions(contents(task.path() / "wchan"), function); });
}

TEST_F(Look, ObserveIsEndedByASignalAlsoWhileItsReaderSleeps) {
  const Scratch files;
  const auto pipe = (files / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC), "open");
  while (::write(reader.get(), "x", 1) == 1) {
  }
  std::vector<std::string> line{"sh", "-c", "exec \"$@\" >\"$0\"", pipe};
  const auto observing = words("observe");
  line.insert(line.end(), observing.begin(), observing.end());
  Process observe(line);
  if (!eventually([&] { return waits_in(observe.pid(), "pipe_write"); }))
    GTEST_SKIP() << "this kernel does not tell where a thread waits";
  observe.signal(SIGTERM);
  EXPECT_EQ(observe.ended(), 128 + SIGTERM);
}

TEST_F(Look, StepDownWaitsForTheSuccessor) {
  Leader leader(directory_);
  ASSERT_TRUE(leader.token);
  LeaderManager next(file::open(directory_.path(), "e", {.name = "bob"}, no_log), file::presets().fast,
                     {.log = no_log});
  next.start();
  EXPECT_EQ(Process(words("step-down", {"--if-token", "1"})).ended(), 1);
  EXPECT_TRUE(leader.manager.leadership().is_leader());
  Process down(words("step-down", {"--if-token", std::to_string(leader.token->value)}));
  EXPECT_EQ(down.ended(), 0) << down.err();
  EXPECT_EQ(down.out().substr(0, 9), "bob leads");
  EXPECT_EQ(down.err(), "tenure: asked ann, token " + std::to_string(leader.token->value) + ", which lives\n");
}

TEST_F(Look, WhatATerminalWouldObeyIsNotPrinted) {
  Process nobody(tool({"step-down", "-e", "a\x1b[2Jb", "--store", "file://" + directory_.path().string()}));
  EXPECT_EQ(nobody.ended(), 3);
  EXPECT_EQ(nobody.err(), "tenure: nobody leads \"a?[2Jb\"\n");
  const auto document = directory_.file("e.json", R"({"store": "memory:", "election": "a\u001b[2Jb"})");
  Process show(tool({"config", "show", document}));
  EXPECT_EQ(show.ended(), 0) << show.err();
  EXPECT_TRUE(mentions(show.out(), "a?[2Jb")) << show.out();
  Process made(tool({"setup", "--store", "file://" + directory_.path().string() + "/%1B%5B2J"}));
  EXPECT_EQ(made.ended(), 0);
  EXPECT_TRUE(mentions(made.out(), "/?[2J, for its owner")) << made.out() << made.err();
}

TEST_F(Look, JsonIsAsciiWhateverALeaderIsCalled) {
  const Leader leader(directory_, "a\xc2\x9b\xe2\x80\xae");
  Process json(words("status", {"--json"}));
  EXPECT_EQ(json.ended(), 0);
  EXPECT_TRUE(mentions(json.out(), R"("name":"a\u009b\u202e")")) << json.out();
  Process text(words("status"));
  text.ended();
  EXPECT_TRUE(text.out().starts_with("a??? leads")) << text.out();
}

TEST_F(Look, DoctorExaminesTheStore) {
  std::string told;
  const auto content = [&] {
    Process doctor(words("doctor", {"--timing", "steady"}));
    const auto code = doctor.ended();
    told = doctor.out() + doctor.err();
    return code == 0;
  };
  EXPECT_TRUE(eventually(content)) << told;  // a busy machine may find its answers slow, which is 1
  EXPECT_TRUE(mentions(told, "an outage of 21.45 s ends no tenure")) << told;
}

TEST_F(Look, AQuestionMakesNothing) {
  for (const auto* command : {"status", "step-down"}) EXPECT_EQ(Process(words(command)).ended(), 3) << command;
  Process(words("doctor")).ended();
  EXPECT_EQ(Process(words("is-leader", {"--id", "ann"})).ended(), 1);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

/// As after a start of the machine. Whoever made it would own it, and lock the candidates out.
TEST_F(Look, AQuestionAboutAMissingDirectoryFindsNobodyAndMakesNone) {
  const auto missing = directory_ / "missing";
  const auto url = "file://" + missing.string();
  const auto document = directory_.file("e.json", R"({"store": ")" + url + R"(", "election": "e"})");
  for (const auto* command : {"check", "show"})
    EXPECT_EQ(Process(tool({"config", command, document})).ended(), 0) << command;
  EXPECT_EQ(Process(tool({"status", "-e", "e", "--store", url})).ended(), 3);
  Process observe(tool({"observe", "-e", "e", "--store", url}));
  EXPECT_TRUE(eventually([&] { return observe.out() == "nobody leads\n"; })) << observe.err();
  Process doctor(tool({"doctor", "--store", url}));
  doctor.ended();
  EXPECT_TRUE(mentions(doctor.out(), "the first candidate makes it")) << doctor.out() << doctor.err();
  EXPECT_FALSE(std::filesystem::exists(missing));
  const Leader leader(missing);
  EXPECT_TRUE(eventually([&] { return mentions(observe.out(), "ann leads"); })) << "and then it is found";
}

TEST_F(Look, SetupMakesADirectoryOnce) {
  const auto url = "file://" + (directory_ / "new").string();
  Process first(tool({"setup", "--store", url})), second(tool({"setup", "--store", url}));
  EXPECT_EQ(first.ended() + second.ended(), 0);
  EXPECT_TRUE(std::filesystem::is_directory(directory_ / "new"));
  EXPECT_EQ(Process(tool({"setup", "--store", url + "/not/here"})).ended(), 78);
  EXPECT_EQ(Process(tool({"setup", "--store", "file://" + directory_.file("file", "x")})).ended(), 78);
}

TEST_F(Look, NoSecretStandsInPs) {
  Process waits(tool({"run", "-e", "e", "--store", "redis://u:" + canary + "@127.0.0.1:1", "--", "true"}));
  EXPECT_TRUE(
      eventually([&] { return mentions(contents("/proc/" + std::to_string(waits.pid()) + "/cmdline"), "****"); }));
  EXPECT_FALSE(mentions(contents("/proc/" + std::to_string(waits.pid()) + "/cmdline"), canary));
}

TEST_F(Look, AWrongCommandLineEndsWith64) {
  expect_code(64, {{},
                   {"fly"},
                   {"status", "--nonsense"},
                   {"status", "-e", "e"},
                   {"status", "--store", "memory:"},
                   {"status", "-e", "e", "--store", "memory:", "--timeout", "5"},
                   {"status", "-e", "e", "--store", "memory:", "--timing", "fast", "--term", "3s"},
                   {"status", "-e", "e", "--store", "memory:", "--all"},
                   {"status", "-e", "e", "--store", "memory:", "--limit", "3"}});
  expect_code(78, {{"status", "-e", "e", "--store", "rediss:/" + canary},
                   {"config", "check", (directory_ / "none.json").string()},
                   {"doctor", "--store", "file:///nowhere/at/all"}});
}

TEST_F(Look, AWordThatIsNotKnownIsNamedWithTheOneThatWasMeant) {
  const auto said = [](const std::vector<std::string>& line) {
    Process wrong(tool(line));
    EXPECT_EQ(wrong.ended(), 64);
    return wrong.err().substr(0, wrong.err().find('\n'));
  };
  EXPECT_EQ(said({"rum", "-e", "e"}), "tenure: there is no command rum, did you mean \"run\"?");
  EXPECT_EQ(said({"run", "-e", "e", "--stor", "memory:", "--", "true"}),
            "tenure: there is no option --stor, did you mean \"--store\"?");
  EXPECT_EQ(said({"run", "-e", "e", "--garce=5s", "--store", "memory:", "--", "true"}),
            "tenure: there is no option --garce, did you mean \"--grace\"?");
  EXPECT_EQ(said({"config", "chekc", "x"}), "tenure: there is no command chekc, did you mean \"check\"?");
  EXPECT_TRUE(mentions(said({"status", "-e"}), "-e")) << "what it wants is known to the parser";
}

TEST_F(Look, WhatTheDocumentSaysIsRefusedBesideIt) {
  const auto document =
      directory_.file("e.json", R"({"store": "file://)" + directory_.path().string() + R"(", "election": "e"})");
  EXPECT_EQ(Process(tool({"status", "-c", document})).ended(), 3);
  EXPECT_EQ(Process({"env", "TENURE_URL=redis://other", TENURE_TOOL_PROGRAM, "status", "-c", document}).ended(), 3)
      << "the variable stands there for all commands";
  for (const auto& option : std::vector<std::vector<std::string>>{{"--store", "memory:"},
                                                                  {"-e", "other"},
                                                                  {"--timing", "fast"},
                                                                  {"--term", "3s"},
                                                                  {"--password-file", "/dev/null"}}) {
    for (const auto* command : {"status", "step-down", "doctor"}) {
      Process both(tool({command, option[0], option[1], "-c", document}));
      EXPECT_EQ(both.ended(), 64) << option[0];
      EXPECT_TRUE(mentions(both.err(), option[0] + " does not go with -c")) << both.err();
    }
  }
}

TEST_F(Look, WhatWouldBeIgnoredIsRefused) {
  const std::string files = "file://" + directory_.path().string();
  for (const auto& [line, told] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"status", "--all", "--store", files, "-e", "e"}, "-e does not go with --all"},
           {{"status", "--all", "--store", files, "--timing", "fast"}, "--timing does not go with --all"},
           {{"status", "--all", "--store", files, "--term", "3s"}, "--term does not go with --all"},
           {{"is-leader", "--http", "127.0.0.1:1", "-e", "e"}, "-e does not go with --http"},
           {{"is-leader", "--http", "127.0.0.1:1", "--id", "ann"}, "--id does not go with --http"},
           {{"is-leader", "--http", "127.0.0.1:1", "--store", files}, "--store does not go with --http"},
           {{"setup", "--groups", "--store", files}, "--groups is for PostgreSQL"}}) {
    Process ignored(tool(line));
    EXPECT_EQ(ignored.ended(), 64) << told;
    EXPECT_TRUE(mentions(ignored.err(), told)) << ignored.err();
  }
}

TEST_F(Look, WhatIsSaidOfAWrongCommandLineShowsNoSecret) {
  const auto url = "redis://u:" + canary + "@h", key = "redis://h?password=" + canary;
  for (const auto& line : std::vector<std::vector<std::string>>{{"status", "-e", "e", url},
                                                                {"status", "-e", "e", key},
                                                                {"status", "--stor=" + url},
                                                                {url},
                                                                {"redis://u:" + canary + "=@h"},
                                                                {"status", "--timing", url},
                                                                {"status", "--timing=" + url},
                                                                {"status", "--all", "--limit=" + key},
                                                                {"step-down", "--if-token", url}}) {
    Process wrong(tool(line));
    EXPECT_EQ(wrong.ended(), 64);
    EXPECT_EQ(mentions(wrong.err(), "redis://"), mentions(wrong.err(), "***")) << wrong.err();
    EXPECT_FALSE(mentions(wrong.err(), canary)) << wrong.err();
  }
}

/// An empty password would be none, and with an empty token nobody may ever ask for a step-down.
TEST_F(Look, AFileWithoutASecretIsRefused) {
  const auto empty = directory_.file("empty", ""), nul = directory_.file("nul", std::string("a\0b", 3));
  const auto pipe = (directory_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& file : {empty, nul, pipe, std::string("/nowhere/secret")}) {
    Process status(tool({"status", "-e", "e", "--store", "redis://127.0.0.1:1", "--password-file", file}));
    EXPECT_EQ(status.ended(), 78) << file;
    EXPECT_TRUE(mentions(status.err(), "--password-file names " + file + ", which ")) << status.err();
  }
  Process run(words("run", {"--http", "127.0.0.1:0", "--step-down-token-file", empty, "--", "true"}));
  EXPECT_EQ(run.ended(), 78);
  EXPECT_TRUE(mentions(run.err(), "--step-down-token-file names " + empty + ", which is empty")) << run.err();
}

TEST_F(Look, AFileWithASecretThatEverybodyMayReadCausesAWarning) {
  const auto file = directory_.file("secret", "x\n");
  const auto said = [&](mode_t mode) {
    EXPECT_EQ(::chmod(file.c_str(), mode), 0);
    Process status(
        tool({"status", "-e", "e", "--store", "redis://127.0.0.1:1", "--timeout", "1ms", "--password-file", file}));
    EXPECT_EQ(status.ended(), 4);
    return status.err();
  };
  EXPECT_EQ(said(0640), "");
  EXPECT_TRUE(mentions(said(0644), "everybody may read " + file)) << said(0644);
}

TEST_F(Look, ConfigShowsWhatFollowsFromADocument) {
  const auto good = directory_.file("good.json", R"({"store": {"url": "redis://h:1", "password": ")" + canary +
                                                     R"("}, "election": "e", "timing": {"term": "10s"}})");
  EXPECT_EQ(Process(tool({"config", "check", good})).ended(), 0);
  Process show(tool({"config", "show", good}));
  EXPECT_EQ(show.ended(), 0) << show.err();
  EXPECT_TRUE(mentions(show.out(), "worst fail-over       10.35 s\n")) << show.out();
  EXPECT_TRUE(mentions(show.out(), "outage ridden out     7.15 s\n"));
  EXPECT_TRUE(mentions(show.out(), "leader's requests/s   0.5\n"));
  EXPECT_FALSE(mentions(show.out(), canary));
  Process schema(tool({"config", "schema"}));
  EXPECT_EQ(schema.ended(), 0);
  EXPECT_FALSE(Json::parse(schema.out()).empty());
}

TEST_F(Look, ConfigReadsADocumentFromStdin) {
  const auto document = directory_.file("in.json", R"({"store": "memory:", "election": "e"})");
  EXPECT_EQ(Process(tool({"config", "check", "-"}), {.in = document}).ended(), 0);
  EXPECT_EQ(Process(tool({"config", "check", "-"})).ended(), 78) << "there is nothing";
}

TEST_F(Look, ConfigCheckShowsAllFindings) {
  const auto bad = directory_.file("bad.json", R"({"store": "redis://h", "election": "", "timing": {"term": "x"}})");
  Process check(tool({"config", "check", bad}));
  EXPECT_EQ(check.ended(), 78);
  EXPECT_TRUE(mentions(check.err(), "/election")) << check.err();
  EXPECT_TRUE(mentions(check.err(), "/timing/term"));
}

}  // namespace
}  // namespace tenure::test
