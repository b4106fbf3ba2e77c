// SPDX-License-Identifier: Apache-2.0
// Stores that are far away, and stores that end all their connections at once.
//
// far_bench latency URL [--round-trips 1,8,40,150] [--presets fast,balanced] [--runs 3]
//   how soon one candidate is elected through a relay that makes each round trip that many ms longer; "-": not in 30 s
// far_bench herd URL 'COMMAND' [--leaders 100] [--presets fast] [--rounds 3]
//   starts that many leaders, ends their connections by COMMAND (run by sh), and counts the ousted. For PostgreSQL:
//   psql "$TENURE_POSTGRES_SOCKET" -c "select pg_terminate_backend(pid) from pg_stat_activity
//                                       where application_name like 'tenure%'"
// far_bench descriptors URL [--leaders 4]
//   the same with as many followers and no file descriptor left; afterwards everybody must lead or follow again
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

#include "eventually.hpp"
#include "no_descriptors.hpp"
#include "relay.hpp"
#include "table.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using test::eventually;

Clock::Time now() { return boot_clock().now(); }
void let_pass(Clock::Duration d) { std::this_thread::sleep_for(d); }  // needs no descriptor
double milliseconds(Clock::Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

struct Settings {
  std::string figure, url, command;
  std::map<std::string, std::string> flags{
      {"round-trips", "1,8,40,150"}, {"presets", ""}, {"runs", "3"}, {"leaders", ""}, {"rounds", "3"}};
  int number(const std::string& flag, int otherwise) const {
    const auto& text = flags.at(flag);
    return text.empty() ? otherwise : std::stoi(text);
  }
  std::vector<std::string> list(const std::string& flag, const std::string& otherwise) const {
    const auto text = flags.at(flag).empty() ? otherwise : flags.at(flag);
    static const std::regex comma(",");
    return {std::sregex_token_iterator(text.begin(), text.end(), comma, -1), std::sregex_token_iterator()};
  }
};

Timing timing_of(const Opened& opened, const std::string& preset) {
  if (preset == "fast") return opened.presets.fast;
  if (preset == "balanced") return opened.presets.balanced;
  if (preset == "steady") return opened.presets.steady;
  throw std::invalid_argument("no such preset: " + preset);
}

/// A candidate, and what happened to it.
class Candidate {
 public:
  Candidate(const std::string& url, const std::string& election, const std::string& preset) {
    auto opened = open({.url = url, .election = election, .log = no_log});
    Hooks hooks;
    hooks.log = no_log;

    hooks.ousting = [this](const Ousting&) { ++ousted_; };
    hooks.error = [this](const Error&) { ++errors_; };
    manager_.emplace(opened.backend, timing_of(opened, preset), std::move(hooks));
    manager_->start();
  }
  bool leads() const { return manager_->leadership().is_leader(); }
  int ousted() const { return ousted_; }
  int errors() const { return errors_; }

 private:
  std::atomic<int> ousted_{}, errors_{};
  std::optional<LeaderManager> manager_;
};

std::string unique(const std::string& stem) {
  static int count = 0;
  return stem + "-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// The URL with another host and port, and the port that it had.
std::pair<std::string, int> through(const std::string& url, int port) {
  static const std::regex address("(@|//)([^@/:,]+):([0-9]+)(?=[/?]|$)");
  std::smatch found;
  if (!std::regex_search(url, found, address)) throw std::invalid_argument("the URL must name one host and port");
  return {found.prefix().str() + found[1].str() + "127.0.0.1:" + std::to_string(port) + found.suffix().str(),
          std::stoi(found[3])};
}

void latency(const Settings& s) {
  test::Relay relay(through(s.url, 0).second);
  const auto url = through(s.url, relay.port()).first;
  bench::print_header("ms until elected");
  for (const auto& preset : s.list("presets", "fast,balanced"))
    for (const auto& trip : s.list("round-trips", "")) {
      relay.far_away(std::chrono::milliseconds(std::stoi(trip)));
      std::vector<double> took;
      for (int run = 0; run < s.number("runs", 3); ++run) {
        const auto began = now();
        const Candidate one(url, unique("latency"), preset);
        if (eventually([&] { return one.leads(); }, 30s)) took.push_back(milliseconds(now() - began));
      }
      bench::print_row(preset + ", round trip +" + trip + " ms", took);
    }
}

std::vector<std::unique_ptr<Candidate>> leaders(const Settings& s, const std::string& preset, int count) {
  std::vector<std::unique_ptr<Candidate>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Candidate>(s.url, unique("herd"), preset));
  for (const auto& one : all)
    if (!eventually([&] { return one->leads(); }, 60s)) throw std::runtime_error("not all were elected in 60 s");
  return all;
}

void run(const std::string& command) {
  if (std::system((command + " > /dev/null").c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void herd(const Settings& s) {
  const int count = s.number("leaders", 100);
  for (const auto& preset : s.list("presets", "fast")) {
    const auto began = now();
    const auto all = leaders(s, preset, count);
    std::printf("%s: %d leaders after %.1f s\n", preset.c_str(), count, milliseconds(now() - began) / 1000);
    let_pass(3s);
    for (int round = 1; round <= s.number("rounds", 3); ++round) {
      const auto totals = [&] {
        std::pair<int, int> out;
        for (const auto& one : all) out.first += one->ousted(), out.second += one->errors();
        return out;
      };
      const auto before = totals();
      run(s.command);
      let_pass(15s);
      const auto after = totals();
      std::printf("%s, round %d: %d of %d ousted, %d errors\n", preset.c_str(), round, after.first - before.first,
                  count, after.second - before.second);
      std::fflush(stdout);
    }
  }
}

void descriptors(const Settings& s) {
  const int count = s.number("leaders", 4);
  auto all = leaders(s, "fast", count);
  const auto election = unique("shared");
  std::vector<std::unique_ptr<Candidate>> same;
  for (int i = 0; i < 2; ++i) same.push_back(std::make_unique<Candidate>(s.url, election, "fast"));
  let_pass(2s);
  {
    const pid_t child = ::fork();  // which can still open what COMMAND needs
    if (child == 0) {
      let_pass(1s);
      ::_exit(std::system((s.command + " > /dev/null").c_str()) == 0 ? 0 : 1);
    }
    const test::NoDescriptors none;
    let_pass(8s);
  }
  const bool well = eventually(
      [&] {
        int lead = 0;
        for (const auto& one : all) lead += one->leads() ? 1 : 0;
        return lead == count && (same[0]->leads() || same[1]->leads());
      },
      30s);
  std::printf("descriptors: %s\n", well ? "all lead again" : "NOT all lead again");
  {
    const test::NoDescriptors none;  // nor does an end need any
    all.clear();
    same.clear();
  }
  std::printf("descriptors: all were destroyed\n");
}

}  // namespace

int main(int argc, char** argv) try {
  Settings s;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--"))
      words.push_back(word);
    else if (i + 1 < argc && s.flags.contains(word.substr(2)))
      s.flags[word.substr(2)] = argv[++i];
    else
      throw std::invalid_argument(word + "?");
  }
  if (words.size() < 2) throw std::invalid_argument("usage: far_bench latency|herd|descriptors URL [COMMAND] [--...]");
  s.figure = words[0], s.url = words[1], s.command = words.size() > 2 ? words[2] : "true";
  if (s.figure == "latency") latency(s);
  if (s.figure == "herd") herd(s);
  if (s.figure == "descriptors") descriptors(s);
} catch (const std::exception& e) {
  std::fprintf(stderr, "far_bench: %s\n", e.what());
  return 1;
}
