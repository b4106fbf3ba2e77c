// SPDX-License-Identifier: Apache-2.0
// Goal: the table "Beside the known tools" in the tool's README is true. Method: each row is a test, which does the
// same to `tenure run` over Redis, to `etcdctl lock` and to `flock`, and compares what came of it with the row.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <optional>

#include "messages.hpp"
#include "run_tool.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// A server of etcd, gone with this object.
class Etcd {
 public:
  Etcd() : server_(words()) {
    EXPECT_TRUE(eventually([&] {
      return Process({"etcdctl", "--endpoints", address(), "get", "x"}).ended() == 0;
    })) << server_.err();
  }
  std::string address() const { return "127.0.0.1:" + port_.text(); }
  void signal(int number) const { server_.signal(number); }

 private:
  Words words() const {
    const auto clients = "http://" + address(), peers = "http://127.0.0.1:" + peers_.text();
    return {"sh", "-c",
            "exec etcd --name one --data-dir '" + data_.path().string() + "' --listen-client-urls " + clients +
                " --advertise-client-urls " + clients + " --listen-peer-urls " + peers +
                " --initial-advertise-peer-urls " + peers + " --initial-cluster one=" + peers};
  }

  Scratch data_{server_data()};
  Port port_, peers_;
  Process server_;
};

/// What stands between the two words, up to the second dot: of "etcdctl version: 3.4.23", "3.4".
std::string release_after(const std::string& text, const std::string& words) {
  const auto at = text.find(words);
  if (at == text.npos) return {};
  const auto from = at + words.size();
  return text.substr(from, text.find('.', text.find('.', from) + 1) - from);
}

/// One of the tools, and the store that it needs.
class Rival {
 public:
  virtual ~Rival() = default;
  virtual Words with(Words command) const = 0;
  virtual void store(int) {}                                           ///< Sends it a signal.
  virtual bool awaits_its_turn(const Process&) const { return true; }  ///< So that a signal ends the wait.
};

class OurTool : public Rival {
 public:
  Words with(Words command) const override {
    Words out{"run", "-c", configuration_, "--grace", "300ms"};
    out.push_back("--");
    out.insert(out.end(), command.begin(), command.end());
    return tool(out);
  }
  void store(int signal) override { ::kill(server_.pid(), signal); }
  bool awaits_its_turn(const Process& run) const override { return tool::children_of(run.pid()).size() == 1; }

 private:
  redis::test::Server server_;
  Scratch scratch_;
  std::string configuration_ = with_a_wide_margin(scratch_, "redis://" + server_.address() + "?first_claim=at_once");
};

class EtcdctlLock : public Rival {
 public:
  Words with(Words command) const override {
    Words out{"etcdctl", "--endpoints", etcd_.address(), "lock", "--ttl=2", "--", "e"};
    out.insert(out.end(), command.begin(), command.end());
    return out;
  }
  void store(int signal) override { etcd_.signal(signal); }
  bool awaits_its_turn(const Process&) const override {  // each who waits has a key of its own
    Process keys({"etcdctl", "--endpoints", etcd_.address(), "get", "e/", "--prefix", "--keys-only"});
    keys.ended();
    const auto text = keys.out();
    return text.find("e/") != text.rfind("e/");
  }

 private:
  Etcd etcd_;
};

class Flock : public Rival {
 public:
  Words with(Words command) const override {
    Words out{"flock", (scratch_ / "lock").string()};
    out.insert(out.end(), command.begin(), command.end());
    return out;
  }

 private:
  Scratch scratch_;
};

std::string code(int status) { return status < 0 ? "killed by " + std::to_string(-status) : std::to_string(status); }
Words sh(const std::string& script) { return {"sh", "-c", script}; }

class Beside : public RunTool {
 protected:
  /// The second is how long to wait for what may not come.
  using Outcome = std::function<std::string(Rival&, Clock::Duration)>;

  /// What the table says of this case, by the tool.
  static std::map<std::string, std::string> row(const std::string& name) {
    std::istringstream in(contents(TENURE_TOOL_README));
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("| " + name + " |")) continue;
      std::istringstream cells(line);
      std::vector<std::string> all;
      for (std::string cell; std::getline(cells, cell, '|');)
        all.push_back(cell.size() < 3 ? cell : cell.substr(1, cell.size() - 2));
      if (all.size() == 5) return {{"tenure run", all[2]}, {"etcdctl lock", all[3]}, {"flock", all[4]}};
    }
    ADD_FAILURE() << "the table has no row of: " << name;
    return {};
  }

  /// What should come is waited for until a slow machine cannot be the reason; what should not come, long enough for
  /// a lease: that of ours lasts 4 s, that of etcdctl 2 s.
  static Clock::Duration patience_for(const std::string& said) {
    const bool nothing = mentions(said, "runs on") || mentions(said, "it waits") || mentions(said, "nothing happens");
    return nothing ? 6s : 60s;
  }

  /// Where etcd is missing, or is of another release than the table's, the test counts as skipped, with that reason; a
  /// difference of the other two still fails.
  void compare(const std::string& name, const Outcome& outcome, bool without_store = true) const {
    const auto said = row(name);
    const auto expect = [&](const std::string& tool, Rival& rival) {
      const auto& cell = said.at(tool);
      EXPECT_EQ(outcome(rival, patience_for(cell)), cell) << tool;
    };
    if (redis::test::server_program().empty()) GTEST_SKIP() << "needs redis-server (Debian: apt install redis-tools)";
    OurTool ours;
    expect("tenure run", ours);
    Flock flock;
    if (without_store)
      expect("flock", flock);
    else
      EXPECT_EQ(said.at("flock"), "–");
    if (Process({"sh", "-c", "command -v etcd && command -v etcdctl"}).ended() != 0)
      GTEST_SKIP() << "needs etcd (Debian: apt install etcd-server etcd-client); the other two are as the table says";
    Process version({"etcdctl", "version"});
    version.ended();
    const auto release = release_after(version.out(), "etcdctl version: ");
    const auto described = release_after(contents(TENURE_TOOL_README), "`etcdctl lock` ");
    if (release != described)
      GTEST_SKIP() << "the table is about etcdctl " << described << "; the other two are as it says";
    EtcdctlLock etcdctl;
    expect("etcdctl lock", etcdctl);
  }

  /// A command that does not obey SIGTERM, and says who it is; the name of its file is new.
  std::string holds(const std::string& name) const {
    std::filesystem::remove(path(name));
    return "trap '' TERM; echo $$ >" + path(name) + "; " + for_ever;
  }
  /// What becomes of a process of a command, when another one would start or until we lose patience.
  static std::string fate(pid_t command, const Process& next, Clock::Duration patience) {
    const bool started = eventually([&] { return next.out() == "next\n"; }, patience);
    if (started) return alive(command) ? "two run at a time" : "it ended before the next one";
    return alive(command) ? "it runs on, the next one waits" : "it ended, the next one waits";
  }
  /// The fate of a stubborn command once its store has got this signal.
  std::string without_store(Rival& rival, int signal, Clock::Duration patience) const {
    Process run(rival.with(sh(holds("pid"))));
    const auto command = told("pid");
    rival.store(signal);
    const bool ended = eventually([&] { return !alive(command); }, patience);
    rival.store(SIGCONT);
    kill_now(command);
    return ended ? "the command is ended" : "the command runs on";
  }
  /// The same once its tool has got it, while another tool waits.
  std::string without_tool(Rival& rival, int signal, Clock::Duration patience) const {
    Process run(rival.with(sh(holds("pid"))));
    const auto command = told("pid");
    const Process next(rival.with(sh("echo next")));
    run.signal(signal);
    const auto out = fate(command, next, patience);
    kill_now(command);
    return out;
  }
  static void kill_now(pid_t pid) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
  void compare_runs(int runs) const {
    compare("a thousand runs of `true`", [runs](Rival& rival, Clock::Duration) {
      const auto before = tool::children_of(::getpid());
      for (int i = 0; i < runs; ++i)
        if (const auto status = Process(rival.with({"true"})).ended(); status != 0)
          return "one ends with " + code(status);
      return std::string(tool::children_of(::getpid()) == before ? "they leave nothing behind" : "processes are left");
    });
  }
};

TEST_F(Beside, Pipeline) {
  compare("in a pipeline", [this](Rival& rival, Clock::Duration) {
    const auto input = files_.file("input", "one\ntwo\n");
    std::string line;
    for (const auto& word : rival.with({"cat"})) line += " '" + word + "'";
    Process pipeline({"sh", "-c", "cat |" + line + " | cat"}, {.in = input});
    pipeline.ended();
    return std::string(pipeline.out() == "one\ntwo\n"     ? "stdin and stdout are the command's"
                       : !mentions(pipeline.out(), "one") ? "nothing of stdin comes through"
                                                          : "stdout has more than the command wrote");
  });
}

TEST_F(Beside, ExitCodes) {
  for (const auto& [name, command] : std::map<std::string, Words>{{"the command exits with 3", sh("exit 3")},
                                                                  {"the command is killed by 9", sh("kill -9 $$")},
                                                                  {"there is no such command", {"/nowhere"}}})
    compare(name,
            [&words = command](Rival& rival, Clock::Duration) { return code(Process(rival.with(words)).ended()); });
}

TEST_F(Beside, Signals) {
  for (const auto& [name, number] :
       std::map<std::string, int>{{"TERM", SIGTERM}, {"INT", SIGINT}, {"QUIT", SIGQUIT}, {"HUP", SIGHUP}}) {
    const std::string trapped = name;
    const int signal = number;
    compare("SIG" + trapped + " to the tool", [&, this](Rival& rival, Clock::Duration patience) {
      std::filesystem::remove(path("pid"));
      std::filesystem::remove(path("got"));
      Process run(rival.with(sh("trap 'echo got >" + path("got") + "; exit 10' " + trapped + "; echo $$ >" +
                                path("pid") + "; " + for_ever)));
      const auto command = told("pid");
      run.signal(signal);
      const bool got = eventually([&] { return !contents(path("got")).empty() || !run.running(); }, patience);
      const auto out = !contents(path("got")).empty() ? "reaches the command; " + code(run.ended())
                       : got ? std::string(alive(command) ? "the command runs on alone" : "ends the command unasked")
                             : "nothing happens";
      kill_now(command);
      return out;
    });
  }
}

TEST_F(Beside, StubbornCommand) {
  compare("SIGTERM, and the command ignores it", [this](Rival& rival, Clock::Duration patience) {
    Process run(rival.with(sh(holds("pid"))));
    const auto command = told("pid");
    run.signal(SIGTERM);
    const bool ended = eventually([&] { return !alive(command); }, patience);
    const bool alone = !run.running();
    kill_now(command);
    return std::string(ended ? "it is killed" : alone ? "it runs on alone" : "it runs on");
  });
}

TEST_F(Beside, Grandchild) {
  compare("the command leaves a process in a session of its own", [this](Rival& rival, Clock::Duration) {
    std::filesystem::remove(path("pid"));
    Process run(rival.with(sh("setsid sh -c 'echo $$ >" + path("pid") + "; " + for_ever + "' & while ! [ -s " +
                              path("pid") + " ]; do sleep 0.01; done")));
    const auto left = told("pid");
    run.ended();
    const bool ended = !alive(left);
    kill_now(left);
    return std::string(ended ? "it is ended too" : "it is left behind");
  });
}

TEST_F(Beside, HangingStoreAndStoreGoneForGood) {
  for (const auto& [name, number] : std::map<std::string, int>{{"the store hangs for longer than the lease", SIGSTOP},
                                                               {"the store is gone for good", SIGKILL}})
    compare(
        name,
        [this, signal = number](Rival& rival, Clock::Duration patience) {
          return without_store(rival, signal, patience);
        },
        false);
}

TEST_F(Beside, StoreAwayAtTheStart) {
  compare(
      "the store is away at the start",
      [](Rival& rival, Clock::Duration patience) {
        rival.store(SIGKILL);
        Process run(rival.with({"true"}));
        const bool ended = eventually([&] { return !run.running(); }, patience);
        return ended ? code(run.ended()) : std::string("it waits");
      },
      false);
}

TEST_F(Beside, StoppedToolAndKilledTool) {
  for (const auto& [name, number] : std::map<std::string, int>{
           {"the tool is stopped for longer than the lease", SIGSTOP}, {"the tool is killed", SIGKILL}})
    compare(name, [this, signal = number](Rival& rival, Clock::Duration patience) {
      return without_tool(rival, signal, patience);
    });
}

TEST_F(Beside, StoppingTheWait) {
  compare("SIGTERM while it waits", [this](Rival& rival, Clock::Duration patience) {
    Process leader(rival.with(sh(holds("pid"))));
    const auto command = told("pid");
    Process waits(rival.with({"true"}));
    EXPECT_TRUE(eventually([&] { return rival.awaits_its_turn(waits); }));
    waits.signal(SIGTERM);
    const bool ended = eventually([&] { return !waits.running(); }, patience);
    kill_now(command);
    return ended ? code(waits.ended()) : std::string("it waits on");
  });
}

TEST_F(Beside, TwoAtOnce) {
  compare("two at once", [this](Rival& rival, Clock::Duration) {
    const auto turn = "mkdir " + path("busy") + " || echo overlap; sleep 0.1; rmdir " + path("busy") + "; echo done";
    Process a(rival.with(sh(turn))), b(rival.with(sh(turn)));
    a.ended();
    b.ended();
    const auto out = a.out() + b.out();
    return std::string(mentions(out, "overlap") ? "both" : "one after the other");
  });
}

TEST_F(Beside, ClosedStdin) {
  compare("stdin is closed", [](Rival& rival, Clock::Duration) {
    Process closed(rival.with(sh("[ -e /proc/$$/fd/0 ] && echo it is open || echo it is closed")),
                   {.stdin_closed = true});
    closed.ended();
    return closed.out().substr(0, closed.out().find('\n'));
  });
}

TEST_F(Beside, SomeRuns) { compare_runs(30); }

TEST_F(Beside, AThousandRuns) { compare_runs(1000); }

}  // namespace
}  // namespace tenure::test
