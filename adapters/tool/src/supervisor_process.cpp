// SPDX-License-Identifier: Apache-2.0
// What the supervisor's process does.
#include "supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <tenure/kit/logging.hpp>

#include "exit_code.hpp"
#include "process_tree.hpp"
#include "wakeup.hpp"

namespace tenure::tool {
namespace {

constexpr Clock::Duration kill_again = std::chrono::milliseconds(2);

/// As waitpid() tells of a process that returned this code.
int exited(int code) { return W_EXITCODE(code, 0); }

/// Where the command expects it. REQUIRES: what had that number is not needed any more.
void move_descriptor(int from, int to) {
  if (from == to)
    ::fcntl(from, F_SETFD, 0);
  else
    ::dup2(from, to);
}

[[noreturn]] void run_words(const std::vector<std::string>& words, const sigset_t& mask) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  write_to_stderr("tenure: cannot run " + printable(words[0]) + ": " + std::generic_category().message(error) + "\n");
  ::_exit(error == ENOENT ? not_found : not_run);
}

class SupervisorProcess {
 public:
  SupervisorProcess(const Command& command, int orders, int witness, Terminal terminal, const ControlGroup& group)
      : command_(command),
        orders_(orders),
        witness_(witness),
        terminal_(terminal),
        group_(group),
        wakeup_({orders, witness}, {SIGCHLD}) {
    become_subreaper();
  }

  /// Until the tool has gone, and nothing of the command is left.
  int serve() {
    while (phase_ != Phase::idle || !tool_gone_) {
      wakeup_.sleep_until(phase_ == Phase::idle                 ? Clock::Time::max()
                          : deadline_.kills(boot_clock().now()) ? boot_clock().now() + kill_again
                                                                : deadline_.next());
      while (wakeup_.signal()) {
      }
      enforce(boot_clock().now());  // before any order, so that a lease that has ended stays ended
      reap();
      keep_witness();
      hear();
      enforce(boot_clock().now());
    }
    return ok;
  }

 private:
  enum class Phase {
    idle,
    on_elected,
    command,
    leftovers,  ///< The command has ended, and others that it started have not.
    on_ousted   ///< The lease does not limit it.
  };

  void hear() {
    if (tool_gone_) return;
    while (const auto order = receive_order(orders_, tool_gone_)) {
      if (const auto* start = std::get_if<Start>(&*order)) obey(*start);
      if (phase_ == Phase::idle || phase_ == Phase::on_ousted) continue;
      if (const auto* lease = std::get_if<Lease>(&*order)) deadline_.extend(*lease);
      if (const auto* end = std::get_if<End>(&*order)) deadline_.end(boot_clock().now(), end->kill_at);
      if (const auto* forward = std::get_if<Forward>(&*order); forward && main_runs_) pass_on(forward->signal);
    }
    if (!tool_gone_) return;
    wakeup_.forget(orders_);
    const auto now = boot_clock().now();
    if (phase_ != Phase::idle && phase_ != Phase::on_ousted) deadline_.end(now, now + command_.grace);
  }

  /// The terminal may have stopped the command. What is to end it reaches it all the same, as from a shell.
  void pass_on(int signal) const {
    ::kill(-main_, signal);
    if (signal != SIGUSR1 && signal != SIGUSR2) ::kill(-main_, SIGCONT);
  }

  /// Keeps the newest. As long as this process lives, nobody takes the tool's tenure for that of a dead process.
  void keep_witness() {
    while (const auto packet = receive_packet(witness_)) {
      if (packet->text.empty()) return wakeup_.forget(witness_);
      for (const int newer : packet->descriptors) {
        if (copy_ >= 0) ::close(copy_);
        copy_ = newer;
        copy_is_of_next_ = true;
      }
    }
  }

  /// Nothing of the command is left. A follower hears of the release once nobody has the file open any more.
  void drop_witness() {
    if (copy_ >= 0 && !copy_is_of_next_) ::close(std::exchange(copy_, -1));
  }

  void obey(const Start& start) {
    if (phase_ != Phase::idle) return;
    keep_witness();  // it was sent before the order
    copy_is_of_next_ = false;
    deadline_ = KillDeadline();
    deadline_.extend(start.lease);
    tell_of(start);
    result_ = {exited(ok), true, false};
    phase_ = Phase::leftovers;
    if (boot_clock().now() >= deadline_.next()) return nothing_left();
    if (command_.on_elected.empty()) return launch(Phase::command, command_.words);
    launch(Phase::on_elected, {"/bin/sh", "-c", command_.on_elected});
  }

  /// By our own environment, which the command inherits.
  void tell_of(const Start& start) const {
    // NOLINTBEGIN(concurrency-mt-unsafe): this process has one thread
    ::setenv("TENURE_ELECTION", start.election, 1);
    ::setenv("TENURE_ID", start.id, 1);
    ::setenv("TENURE_STORE", start.store, 1);
    ::setenv("TENURE_TOKEN", std::to_string(start.token.value).c_str(), 1);
    ::unsetenv("TENURE_URL");  // it may hold a password
    if (!command_.notify_socket.empty()) {
      ::setenv("NOTIFY_SOCKET", command_.notify_socket.c_str(), 1);
      ::setenv("WATCHDOG_USEC", std::to_string(command_.watchdog.count()).c_str(), 1);
    }
    // NOLINTEND(concurrency-mt-unsafe)
  }

  void launch(Phase phase, const std::vector<std::string>& words) {
    const auto supervisor = ::getpid(), before = main_;
    phase_ = phase;
    main_ = ::fork();
    if (main_ < 0) {
      main_ = 0;
      write_to_stderr("tenure: no process for " + printable(words[0]) + ": " + std::generic_category().message(errno) +
                      "\n");
      return main_ended(exited(not_run));
    }
    if (main_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != supervisor) ::_exit(broken);
      become(words, before);
    }
    ::setpgid(main_, main_);  // whichever of us is first
    main_runs_ = true;
    if (phase != Phase::on_ousted) owes_ousted_ = !command_.on_ousted.empty();
  }

  void become(const std::vector<std::string>& words, pid_t before) const {
    ::setpgid(0, 0);
    group_.enter();
    terminal_.give_to(::getpid(), before);
    if (phase_ == Phase::command && command_.progress_as >= 0) move_descriptor(command_.progress, command_.progress_as);
    run_words(words, command_.mask);
  }

  void reap() {
    for (;;) {
      int status = 0;
      const auto pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
      if (pid > 0 && pid == main_) WIFSTOPPED(status) ? main_stopped(WSTOPSIG(status)) : main_ended(status);
      if (pid == 0) return;
      if (pid < 0 && errno != ECHILD) continue;
      if (pid < 0) {
        if (main_runs_) main_ended(exited(broken));  // reaped by somebody else: an end that nobody knows
        if (phase_ == Phase::leftovers) nothing_left();
        if (!main_runs_) return;  // on_ousted may have been started just now
      }
    }
  }

  /// The shell knows the tool alone. So nobody else continues a command that has the terminal, after Ctrl-Z for
  /// instance. In the background it would only be stopped again, and SIGSTOP comes from somebody who wants that.
  void main_stopped(int signal) const {
    if (signal != SIGSTOP && terminal_.belongs_to(main_)) {
      ::kill(-main_, SIGCONT);
    } else if (signal == SIGTTIN || signal == SIGTTOU) {
      write_to_stderr(
          terminal_.there()
              ? "tenure: the command is stopped, for it uses the terminal while the tool stands in the "
                "background; start the tool in the foreground, or give it another stdin\n"
              : "tenure: the command is stopped, for it uses a terminal that is not the tool's stdin; give the "
                "tool the terminal as its stdin, or run the command by setsid --wait\n");
    }
  }

  void main_ended(int status) {
    main_runs_ = false;
    const auto now = boot_clock().now();
    if (phase_ == Phase::on_elected && status == exited(ok) && !deadline_.ending())
      return launch(Phase::command, command_.words);
    if (phase_ == Phase::on_elected || phase_ == Phase::command) result_ = {status, deadline_.ending(), false};
    deadline_.end(now, std::exchange(phase_, Phase::leftovers) == Phase::on_ousted ? now : now + command_.grace);
  }

  /// The group of main_ has ended, and whoever left it.
  void nothing_left() {
    if (std::exchange(owes_ousted_, false)) {
      const auto now = boot_clock().now();
      deadline_ = KillDeadline();
      deadline_.extend({now + command_.grace, now + 2 * command_.grace});
      send(orders_, result_);
      return launch(Phase::on_ousted, {"/bin/sh", "-c", command_.on_ousted});
    }
    main_ = 0;
    terminal_.give_back();
    phase_ = Phase::idle;
    drop_witness();
    result_.over = true;
    send(orders_, result_);
  }

  void enforce(Clock::Time now) {
    if (phase_ == Phase::idle) return;
    if (deadline_.terms(now)) terminate();
    if (deadline_.kills(now)) kill();
  }

  void terminate() const {
    const auto all = [this](int signal) {
      if (main_runs_)
        ::kill(-main_, signal);
      else
        signal_descendants(::getpid(), signal);
    };
    all(SIGTERM);
    all(SIGCONT);
  }

  void kill() {
    group_.kill();
    if (main_runs_) ::kill(-main_, SIGKILL);
    const auto stranger = signal_descendants(::getpid(), SIGKILL);
    if (stranger > 0 && !group_.there()) tell_of_stranger(stranger);
  }

  /// Once, for the kill is tried again and again.
  void tell_of_stranger(pid_t stranger) {
    if (std::exchange(stranger_told_, true)) return;
    write_to_stderr("tenure: process " + std::to_string(stranger) +
                    " of the command belongs to another user, so that it cannot be killed and may outlive the lease; "
                    "run tenure as root, or where it may make a control group\n");
  }

  const Command& command_;
  const int orders_, witness_;
  const Terminal terminal_;
  const ControlGroup& group_;
  Wakeup wakeup_;
  bool tool_gone_{};
  Phase phase_{Phase::idle};
  KillDeadline deadline_;
  pid_t main_{};  ///< Also the group that it leads.
  bool main_runs_{};
  bool owes_ousted_{};  ///< Something of this tenure was started, so on_ousted has to run after it.
  Ended result_{};
  bool stranger_told_{};
  int copy_{-1};            ///< Of the file store's lock.
  bool copy_is_of_next_{};  ///< It came after the order to start.
};

}  // namespace

int serve_as_supervisor(const Command& command, int orders, int witness, const Terminal& terminal,
                        const ControlGroup& group) {
  return SupervisorProcess(command, orders, witness, terminal, group).serve();
}

}  // namespace tenure::tool
