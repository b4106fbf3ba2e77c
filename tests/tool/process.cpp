// SPDX-License-Identifier: Apache-2.0
// Starts a process with files as its output, and waits for it.
#include "process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "eventually.hpp"

namespace tenure::test {

std::string contents(const std::string& path) {
  // A process may end while its file in /proc is read. operator<< then stops; an iterator would throw.
  const std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool alive(pid_t pid) {
  const auto stat = contents("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end != stat.npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

Process::Process(std::vector<std::string> words, Streams streams) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto out = (scratch_ / "out").string(), err = (scratch_ / "err").string();
  if (streams.in.empty()) streams.in = "/dev/null";
  const auto parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(::open(streams.in.c_str(), O_RDONLY), STDIN_FILENO);
  ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
  for (int fd = streams.stdin_closed ? 0 : 3; fd < 32; ++fd)
    if (fd < 1 || fd > 2) ::close(fd);
  if (::getppid() == parent) ::execvp(argv[0], argv.data());
  ::_exit(125);
}

Process::~Process() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  ::kill(pid_, SIGCONT);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

bool Process::running() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return !status_;
}

int Process::ended() {
  eventually([this] { return !running(); });
  return status_.value_or(-1000);
}

std::string Process::out() const { return contents((scratch_ / "out").string()); }
std::string Process::err() const { return contents((scratch_ / "err").string()); }

}  // namespace tenure::test
