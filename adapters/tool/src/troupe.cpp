// SPDX-License-Identifier: Apache-2.0
#include "troupe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/leader_manager.hpp>

#include "exit_code.hpp"

namespace tenure::tool {
namespace {

constexpr int begin = SIGUSR2;

/// A member takes all descriptors below this one before it opens the store.
constexpr int first_of_store = 64;

void take_low_descriptors() {
  int taken = 0;
  while (taken >= 0 && taken < first_of_store - 1) taken = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
}

/// Breaks every connection of this process, and lets it open nothing more. The limit is not 0: poll() refuses to look
/// at more descriptors than that, and a client would try again without a pause.
void cut_off() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  const rlimit no_more{first_of_store, first_of_store};
  ::setrlimit(RLIMIT_NOFILE, &no_more);
  for (const auto& entry : all)
    if (const auto descriptor = number<int>(entry.path().filename().string())) ::shutdown(*descriptor, SHUT_RDWR);
}

}  // namespace

Troupe::Troupe(const Place& place, std::size_t size) {
  int both[2];
  if (::pipe2(both, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "no pipe for the members");
  heard_ = both[0];
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int signal : {begin, cut, SIGTERM}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before);  // the members wait for them
  const auto parent = ::getpid();
  for (std::size_t who = 0; who < size; ++who) {
    const auto pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "no process for a member");
    if (pid > 0) {
      members_.push_back({pid, State::waits});
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) take_part(place, who, both[1]);
    ::_exit(broken);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(both[1]);
}

Troupe::~Troupe() {
  for (const auto& member : members_)
    if (member.state != State::gone) ::kill(member.pid, SIGKILL);
  for (const auto& member : members_)
    if (member.state != State::gone) ::waitpid(member.pid, nullptr, 0);
  ::close(heard_);
}

void Troupe::take_part(const Place& place, std::size_t who, int tells) try {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {begin, cut, SIGTERM}) sigaddset(&signals, signal);
  int signal = 0;
  sigwait(&signals, &signal);
  take_low_descriptors();
  auto mine = place;
  mine.id = "drill-" + std::to_string(who + 1);
  const auto opened = open_place(mine, no_log);
  const auto tell = [&](Token token, bool ousted) {
    const Told told{{who, token, boot_clock().now()}, ousted};
    if (::write(tells, &told, sizeof told) != static_cast<ssize_t>(sizeof told)) ::_exit(broken);
  };
  Hooks hooks;
  hooks.elected = [&](const Elected& event) { tell(event.token, false); };
  hooks.ousting = [&](const Ousting& event) { tell(event.token, true); };
  hooks.log = no_log;
  LeaderManager manager(opened.backend, opened.timing, hooks);
  manager.start();
  while (sigwait(&signals, &signal) == 0 && signal != SIGTERM)
    if (signal == cut) cut_off();
  manager.stop();
  ::_exit(ok);
} catch (const std::exception& e) {
  write_to_stderr("tenure: a member of the drill failed: " + printable(e.what()) + "\n");
  ::_exit(broken);
}

void Troupe::fill(std::size_t members) {
  auto there = static_cast<std::size_t>(
      std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.state == State::takes_part; }));
  for (auto& member : members_) {
    if (there >= members) return;
    if (member.state != State::waits) continue;
    member.state = State::takes_part;
    ::kill(member.pid, begin);
    ++there;
  }
}

/// False: nothing came until then.
bool Troupe::hear(Clock::Time until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_clock().now()).count();
  pollfd asked{heard_, POLLIN, 0};
  if (left <= 0 || ::poll(&asked, 1, static_cast<int>(left)) <= 0) return false;
  Told told{};
  if (::read(heard_, &told, sizeof told) != static_cast<ssize_t>(sizeof told)) return false;
  if (told.ousted) {
    ousted_token_ = told.lead.token;
    if (leader_ && leader_->token == told.lead.token) leader_.reset();
  } else {
    leader_ = told.lead;
  }
  return true;
}

Troupe::Lead Troupe::await_leader() {
  const auto until = boot_clock().now() + patience;
  while (hear(boot_clock().now() + std::chrono::milliseconds(1))) {  // what has come by now
  }
  while (!leader_)
    if (!hear(until) && boot_clock().now() >= until)
      throw Failed(unreachable, "no member was elected; try tenure doctor with the same store");
  return *leader_;
}

Troupe::Lead Troupe::await_leader_after(const Lead& last) {
  if (leader_ && leader_->who == last.who) leader_.reset();
  const auto next = await_leader();
  if (next.token <= last.token)
    throw Failed(no, "the token fell from " + std::to_string(last.token.value) + " to " +
                         std::to_string(next.token.value) + ": the store has lost data");
  return next;
}

void Troupe::hurt(std::size_t who, int signal) const { ::kill(members_[who].pid, signal); }

void Troupe::heal(const Lead& hurt, int signal) {
  auto& member = members_[hurt.who];
  if (signal == SIGSTOP) {
    ::kill(member.pid, SIGCONT);
    const auto until = boot_clock().now() + patience;
    while (ousted_token_ != hurt.token)
      if (!hear(until) && boot_clock().now() >= until)
        throw Failed(no, "a leader that was stopped never noticed that its tenure is over");
    return;
  }
  member.state = State::gone;
  if (signal == cut) ::kill(member.pid, SIGKILL);
  ::waitpid(member.pid, nullptr, 0);
}

}  // namespace tenure::tool
