// SPDX-License-Identifier: Apache-2.0
// Goal: of the commands that `tenure run` guards, one runs at a time, and its token is above all before it, whatever is
// stopped and killed: tools, commands, the server. Method: per store three tools contend, and each guards a command
// that writes down token and time each millisecond. A nemesis stops and kills them, mostly the one that leads. The
// judge reads what the commands wrote. TENURE_CHAOS_SECONDS=600 makes it ten minutes; otherwise the long form takes 40
// s.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include <tenure/kit/wait.hpp>

#include "launched.hpp"
#include "nemesis.hpp"
#include "run_tool.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr Clock::Duration term = 4s;  // its margin is a fifth of it, so that a busy machine is in time
constexpr auto launch_patience = 3min;

/// What one command wrote.
struct Run {
  std::uint64_t token{};
  long pid{};
  Clock::rep first{}, last{};
  std::size_t entries{};
};

std::vector<Run> runs_in(const std::string& path) {
  std::map<std::pair<std::uint64_t, long>, Run> all;
  std::ifstream in(path);
  for (Run line; in >> line.token >> line.pid >> line.first;) {
    auto& run = all.emplace(std::pair(line.token, line.pid), line).first->second;
    run.first = std::min(run.first, line.first);
    run.last = std::max(run.last, line.first);
    ++run.entries;
  }
  std::vector<Run> out;
  for (const auto& [key, run] : all) out.push_back(run);
  std::sort(out.begin(), out.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  return out;
}

class Guarded : public RunTool, public ::testing::WithParamInterface<std::string> {
 protected:
  static constexpr std::size_t tools = 3;

  struct Tool {
    std::unique_ptr<Process> process;
    std::optional<Clock::Time> resumes;
  };

  void SetUp() override {
    if (GetParam() == "file") return write_document(url());
    server_.emplace(GetParam());
    if (!server_->runs()) GTEST_SKIP() << "no server: docker/" << GetParam() << " says why";
    write_document(server_->url());
  }

  void write_document(const std::string& store) {
    const auto timing = R"({"term": ")" + std::to_string(term / 1s) + R"(s", "renew": "500ms", "margin": "800ms"})";
    document_ = files_.file("guarded.json",
                            R"({"store": ")" + store + R"(", "election": "guarded", "timing": )" + timing + "}");
  }

  void start(std::size_t i) {
    Words words{"run", "-c", document_, "--grace", "300ms", "--", TENURE_TICKER, path("log")};
    if (i == 0) words.emplace_back("stubborn");
    tools_[i] = {std::make_unique<Process>(tool(words)), std::nullopt};
    ++counts_["tools started"];
  }

  /// The command that wrote last, if it still runs.
  pid_t command() const {
    std::ifstream in(path("log"), std::ios::ate);
    const auto size = static_cast<std::streamoff>(in.tellg());
    in.seekg(std::max<std::streamoff>(0, size - 200));
    std::string token, last;
    pid_t pid = 0;
    for (std::string line; std::getline(in, line);)
      if (std::count(line.begin(), line.end(), ' ') == 2) last = line;
    std::istringstream(last) >> token >> pid;
    return pid > 0 && alive(pid) && parent_is_ours(pid) ? pid : 0;
  }

  bool parent_is_ours(pid_t pid) const { return tool_of(pid).has_value(); }

  std::optional<std::size_t> tool_of(pid_t command) const {
    for (std::size_t i = 0; i < tools; ++i)
      for (const auto supervisor : tool::children_of(tools_[i].process->pid()))
        for (const auto child : tool::children_of(supervisor))
          if (child == command) return i;
    return std::nullopt;
  }

  Clock::Duration between(Clock::Duration least, Clock::Duration most) {
    return Clock::Duration(std::uniform_int_distribution<Clock::rep>(least.count(), most.count())(random_));
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  void heal(Clock::Time now) {
    for (std::size_t i = 0; i < tools; ++i) {
      auto& one = tools_[i];
      if (one.resumes && *one.resumes <= now) {
        one.process->signal(SIGCONT);
        one.resumes.reset();
      }
      if (!one.process->running()) start(i);
    }
    if (stopped_command_ && stopped_command_->second <= now) {
      ::kill(stopped_command_->first, SIGCONT);
      stopped_command_.reset();
    }
    if (server_heals_ && *server_heals_ <= now) {
      server_frozen_ ? server_->thaw() : server_->restart();
      server_heals_.reset();
    }
  }

  void strike(Clock::Time now) {
    const auto leads = command();
    // A broken supervisor is seen by it: so it comes in every run, alone.
    const bool first = counts_["tools stopped"] == 0;
    const bool alone = counts_["tools stopped"] == 1 &&
                       std::any_of(tools_.begin(), tools_.end(), [](const Tool& one) { return one.resumes; });
    if (alone || (first && leads == 0)) return;
    const auto at = leads > 0 && (first || chance(0.8)) ? tool_of(leads) : std::nullopt;
    const auto any = between(Clock::Duration(0), Clock::Duration(tools - 1)).count();
    auto& one = tools_[at ? *at : static_cast<std::size_t>(any) % tools];
    const auto dice = first ? 1 : between(Clock::Duration(0), Clock::Duration(server_ ? 5 : 3)).count();
    if (dice == 0) {
      ++counts_["tools killed"];
      one.process->signal(SIGKILL);
    } else if (dice == 1 && !one.resumes) {
      ++counts_["tools stopped"];
      one.process->signal(SIGSTOP);
      one.resumes = now + (first ? 2 * term : between(term / 4, 2 * term));
    } else if (dice == 2 && leads > 0) {
      ++counts_["commands killed"];
      ::kill(leads, SIGKILL);
    } else if (dice == 3 && leads > 0 && !stopped_command_) {
      ++counts_["commands stopped"];
      ::kill(leads, SIGSTOP);
      stopped_command_ = {leads, now + between(term / 4, 3 * term / 2)};
    } else if (dice > 3 && !server_heals_) {
      server_frozen_ = dice == 4;
      ++counts_[server_frozen_ ? "server stopped" : "server killed"];
      server_frozen_ ? server_->freeze() : server_->crash();
      server_heals_ = now + between(term / 8, 3 * term / 2);
    }
  }

  /// So that another one leads.
  void kill_leader() {
    const auto leads = command();
    const auto at = leads > 0 ? tool_of(leads) : std::nullopt;
    if (!at) return;
    ++counts_["leaders killed at the end"];
    tools_[*at].process->signal(SIGKILL);
  }

  void contend(int seconds, std::size_t least_runs);

  std::optional<Launched> server_;
  std::string document_;
  std::array<Tool, tools> tools_;
  std::optional<std::pair<pid_t, Clock::Time>> stopped_command_;
  std::optional<Clock::Time> server_heals_;
  bool server_frozen_{};
  std::map<std::string, int> counts_;
  std::mt19937 random_;
};

void Guarded::contend(int seconds, std::size_t least_runs) {
  const auto plan = Plan::from_environment(term, seconds);
  random_.seed(plan.seed);
  for (std::size_t i = 0; i < tools; ++i) start(i);
  auto& first = *tools_[0].process;
  ASSERT_TRUE(eventually([&] { return command() > 0 || !first.running(); }, launch_patience));
  ASSERT_TRUE(first.running()) << first.err();

  auto& clock = boot_clock();
  const auto end = clock.now() + plan.duration;
  const auto enough = [&] {  // hand-overs to judge
    return clock.now() >= end && (clock.now() >= end + launch_patience || runs_in(path("log")).size() >= least_runs);
  };
  while (!enough()) {
    wait_out({clock, clock.now() + between(term / 20, term / 2), {}});
    heal(clock.now());
    if (clock.now() < end)
      strike(clock.now());
    else
      kill_leader();
  }
  heal(Clock::Time::max());
  const auto before = runs_in(path("log")).size();
  EXPECT_TRUE(eventually([this] { return command() > 0; }, launch_patience)) << "nobody leads any more";
  for (const auto& one : tools_) one.process->signal(SIGTERM);
  for (const auto& one : tools_) one.process->ended();
  server_.reset();
  EXPECT_TRUE(eventually([] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // supervisors whose tools were killed are children of ours
    }
    return tool::children_of(::getpid()).empty();
  })) << "a process is left behind";

  const auto runs = runs_in(path("log"));
  auto smallest = Clock::Duration::max();
  std::size_t entries = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    entries += runs[i].entries;
    if (i == 0) continue;
    const auto gap = Clock::Duration(runs[i].first - runs[i - 1].last);
    smallest = std::min(smallest, gap);
    EXPECT_GT(runs[i].token, runs[i - 1].token) << TENURE_PROMISE;
    EXPECT_GT(gap.count(), 0) << "the commands of tokens " << runs[i - 1].token << " and " << runs[i].token
                              << " ran beside each other " << TENURE_PROMISE;
  }
  std::cout << GetParam() << ", " << plan.duration / 1s << " s, seed " << plan.seed << ": " << runs.size()
            << " commands wrote " << entries << " lines; the smallest gap between two: " << smallest / 1us << " us\n";
  for (const auto& [what, count] : counts_) std::cout << "  " << what << ": " << count << "\n";
  EXPECT_GE(runs.size(), least_runs) << "too few for a test";
  EXPECT_GE(runs.size(), before);
}

TEST_P(Guarded, OneCommandRunsAtATimeAndTokensRise) { contend(12, 3); }
TEST_P(Guarded, OneCommandRunsAtATimeAndTokensRiseForLong) { contend(40, 4); }

INSTANTIATE_TEST_SUITE_P(Stores, Guarded, ::testing::Values("file", "postgres", "redis", "kafka"),
                         [](const auto& which) { return which.param; });

}  // namespace
}  // namespace tenure::test
