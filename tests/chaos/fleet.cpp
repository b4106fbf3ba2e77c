// SPDX-License-Identifier: Apache-2.0
// Starts, signals and awaits candidates, and reads their journal.
#include "fleet.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include <tenure/kit/wait.hpp>

#include "lateness.hpp"

namespace tenure::test {
namespace {

constexpr auto look_again = std::chrono::milliseconds(1);
constexpr auto stands_still_within = std::chrono::seconds(60);

void pause() { wait_out({boot_clock(), boot_clock().now() + look_again, {}}); }

std::string text_field(const std::string& line, const std::string& name) {
  const auto key = '"' + name + "\":\"";
  auto at = line.find(key);
  if (at == line.npos) return {};
  std::string out;
  for (at += key.size(); at < line.size() && line[at] != '"'; ++at) out += line[at] == '\\' ? line[++at] : line[at];
  return out;
}

std::int64_t number_field(const std::string& line, const std::string& name) {
  const auto key = '"' + name + "\":";
  const auto at = line.find(key);
  return at == line.npos ? 0 : std::strtoll(line.c_str() + at + key.size(), nullptr, 10);
}

}  // namespace

Event parse_event(const std::string& text) {
  const auto begin = text.rfind("{\"t\":");
  const auto line = begin == text.npos ? text : text.substr(begin);
  Event e;
  e.what = text_field(line, "event");
  e.at = Clock::Time(Clock::Duration(number_field(line, "t")));
  e.pid = static_cast<pid_t>(number_field(line, "pid"));
  e.token = Token{static_cast<std::uint64_t>(number_field(line, "token"))};
  e.after = Clock::Time(Clock::Duration(number_field(line, "after")));
  e.until = Clock::Time(Clock::Duration(number_field(line, "until")));
  e.term = Clock::Duration(number_field(line, "term"));
  e.margin = Clock::Duration(number_field(line, "margin"));
  e.election = text_field(line, "election");
  e.name = text_field(line, "name");
  e.reason = text_field(line, "reason");
  e.detail = text_field(line, "detail");
  e.message = text_field(line, "message");
  return e;
}

Fleet::Fleet(std::string program, std::vector<std::string> arguments, std::filesystem::path journal)
    : program_(std::move(program)), arguments_(std::move(arguments)), journal_(std::move(journal)) {
  fd_ = ::open(journal_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), journal_);
}

Fleet::~Fleet() {
  for (const auto pid : running_) ::kill(pid, SIGKILL);
  for (const auto pid : running_) ::waitpid(pid, nullptr, 0);
  ::close(fd_);
  if (testing::Test::HasFailure() && !failure_excused) keep_journal();
}

pid_t Fleet::start(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> words{program_, "--name", name, "--log", journal_};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto parent = ::getpid();
  const auto pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::execv(program_.c_str(), argv.data());
    ::_exit(127);
  }
  running_.insert(pid);
  return pid;
}

void Fleet::signal(pid_t pid, int number) const {
  if (running_.contains(pid)) ::kill(pid, number);  // 0 and -1 would reach others
}

void Fleet::stop(pid_t pid) const {
  signal(pid, SIGSTOP);
  const auto give_up = boot_clock().now() + stands_still_within;
  for (siginfo_t found{}; found.si_pid == 0; pause()) {
    if (::waitid(P_PID, static_cast<id_t>(pid), &found, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) != 0)
      throw std::system_error(errno, std::generic_category(), "waitid");
    if (found.si_pid == 0 && boot_clock().now() > give_up) throw std::runtime_error("a process does not stop");
  }
  note(done_to::stopped, pid);
}

void Fleet::resume(pid_t pid) const {
  note(done_to::resumed, pid);
  signal(pid, SIGCONT);
}

bool Fleet::reap(pid_t pid, Clock::Duration within) {
  const Lateness since;
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (within == Clock::Duration::zero() || !in_time(since, within)) return false;
    pause();
  }
  running_.erase(pid);
  return true;
}

const std::vector<Event>& Fleet::events() {
  char buffer[65536];
  struct stat journal {};
  if (::fstat(fd_, &journal) != 0) throw std::system_error(errno, std::generic_category(), journal_);
  // Not what comes while this reads: who writes faster than this reads would keep it here for ever.
  for (ssize_t got = 0; offset_ < journal.st_size && (got = ::pread(fd_, buffer, sizeof buffer, offset_)) > 0;) {
    offset_ += got;
    rest_.append(buffer, static_cast<std::size_t>(got));
    std::size_t from = 0;
    for (auto end = rest_.find('\n'); end != rest_.npos; from = end + 1, end = rest_.find('\n', from))
      if (auto event = parse_event(rest_.substr(from, end - from)); taker_)
        taker_(event);
      else
        events_.push_back(std::move(event));
    rest_.erase(0, from);
  }
  return events_;
}

std::size_t Fleet::await(std::size_t from, const std::function<bool(const Event&)>& fits, Clock::Duration within) {
  const Lateness since;
  for (;;) {
    for (; from < events().size(); ++from)
      if (fits(events_[from])) return from;
    if (!in_time(since, within)) return npos;
    pause();
  }
}

void Fleet::end_all(Clock::Duration within) {
  for (const auto pid : std::set<pid_t>(running_)) {
    signal(pid, SIGTERM);
    EXPECT_TRUE(reap(pid, within)) << pid << " does not end";
  }
}

void Fleet::note(const std::string& event, pid_t pid) const {
  const auto line = "{\"t\":" + std::to_string(boot_clock().now().time_since_epoch().count()) +
                    ",\"pid\":" + std::to_string(pid) + ",\"event\":\"" + event + "\"}\n";
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::system_error(errno, std::generic_category(), journal_);
}

pid_t Fleet::leader() {
  for (events(); counted_ < events_.size(); ++counted_) {
    const auto& e = events_[counted_];
    if (e.what == "lead" || e.what == "follow" || e.what == "quit") leads_[e.pid] = e.what == "lead";
  }
  pid_t leader = 0;
  for (const auto& [pid, yes] : leads_) {
    if (!yes || !running_.contains(pid)) continue;
    if (leader) return 0;
    leader = pid;
  }
  return leader;
}

void Fleet::keep_journal() const {
  const auto kept = std::filesystem::temp_directory_path() /
                    ("tenure-" + std::to_string(::getpid()) + "-" + journal_.filename().string());
  std::error_code failed;
  std::filesystem::rename(journal_, kept, failed);
  std::cout << "the journal is kept: " << (failed ? journal_ : kept) << '\n';
}

}  // namespace tenure::test
