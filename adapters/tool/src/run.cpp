// SPDX-License-Identifier: Apache-2.0
// tenure run: runs a command while we lead.
#include <fcntl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenure/json_log.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "run_loop.hpp"

namespace tenure::tool {
namespace {

struct Wanted {
  Place place;
  std::string wait, grace, on_lost{"term"}, stall_after, stall_pause, http, step_down_token_file, log{"info"};
  std::vector<std::string> http_hosts;
  bool once{};
  Command command;
};

/// Of a stream that is closed the number would become that of a file of ours. The command finds it closed, as we did.
void fill_closed_streams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

/// The file store tells of a dead leader at once. So the supervisor keeps a copy of the lock: the lead of a tool that
/// was killed passes on once the supervisor has ended the command.
void add_witness(Place& place, const Supervisor& supervisor) { place.witness = std::to_string(supervisor.witness()); }

Log log_of(const std::string& wanted) {
  return wanted == "json" ? json_log() : stderr_log(wanted == "info" ? Level::info : Level::warning);
}

RunOptions options_of(const Wanted& wanted) {
  RunOptions options{.once = wanted.once,
                     .kill_on_loss = wanted.on_lost == "kill",
                     .http = wanted.http,
                     .http_hosts = wanted.http_hosts,
                     .log = log_of(wanted.log)};
  if (!wanted.wait.empty()) options.wait = option("--wait", wanted.wait);
  options.grace = wanted.grace.empty() ? std::chrono::seconds(10) : option("--grace", wanted.grace);
  if (!wanted.stall_after.empty()) options.stall_after = option("--stall-after", wanted.stall_after);
  if (!wanted.stall_pause.empty()) options.stall_pause = option("--stall-pause", wanted.stall_pause);
  if (!wanted.step_down_token_file.empty())
    options.step_down_token = secret_in("--step-down-token-file", wanted.step_down_token_file);
  return options;
}

/// None if the command need not tell of progress.
std::unique_ptr<Progress> watch(Command& command, Clock::Duration stall_after) {
  if (stall_after == Clock::Duration::zero()) return nullptr;
  auto progress = std::make_unique<Progress>();
  command.progress = progress->writes();
  command.notify_socket = progress->socket();
  command.watchdog = std::chrono::duration_cast<std::chrono::microseconds>(stall_after);
  return progress;
}

int run_command(Wanted wanted) {
  const auto options = options_of(wanted);
  wanted.command.grace = options.grace;
  fill_closed_streams();
  ServiceManager service;
  const auto progress = watch(wanted.command, options.stall_after);

  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &wanted.command.mask);
  Supervisor supervisor(wanted.command);  // before the first thread
  if (progress) progress->handed_on();
  // Ctrl-Z stops us, and the watchdog of a service manager ends us by SIGABRT. What others of our job do at the
  // terminal while the command has it stops them, not us: the supervisor would end the command of a tool that stands
  // still.
  for (const int obeyed : {SIGTSTP, SIGABRT}) sigdelset(&all, obeyed);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);

  add_witness(wanted.place, supervisor);
  const auto opened = open_place(wanted.place, options.log);
  try {
    return run_while_leading(opened, {supervisor, service, progress.get()}, options);
  } catch (const std::invalid_argument& e) {
    throw Failed(misconfigured, e.what());
  }
}

}  // namespace

void add_run(CLI::App& tool, Run& run) {
  const auto wanted = std::make_shared<Wanted>();
  auto& command = *tool.add_subcommand("run", "Run a command while we lead, and end it before somebody else may lead");
  add_election(command, wanted->place);
  const auto text = [&command](const char* name, std::string& value, const char* type, const char* help) {
    return command.add_option(name, value, help)->type_name(type);
  };
  const auto choice = [&text](const char* name, std::string& value, const char* type, const char* help) {
    text(name, value, type, help)->check(CLI::IsMember(CLI::detail::split(type, '|')).description(""));
  };
  // Others are options of these: with an empty one they would do nothing.
  const auto not_empty = CLI::Validator([](const std::string& given) { return given.empty() ? "is empty" : ""; }, "");
  text("--id", wanted->place.id, "TEXT", "Our name as a candidate (default: host, process and time)");
  text("--address", wanted->place.address, "TEXT", "Where followers reach us, in a form of your choice");
  text("--wait", wanted->wait, "DUR", "How long to wait for the lead, at first and after each loss");
  command.add_flag("--once", wanted->once, "Exit when the lead is lost, in place of waiting for it again");
  choice("--on-lost", wanted->on_lost, "term|kill",
         "How the command ends with the lease: SIGTERM first, or SIGKILL alone");
  text("--grace", wanted->grace, "DUR",
       "How long it may take to end after SIGTERM, 10s if missing; less if the lease leaves less");
  auto* const stall_after = text(
      "--stall-after", wanted->stall_after, "DUR",
      "End the command if it tells of no progress for so long: by WATCHDOG=1 as in sd_notify(3), or by --progress-fd");
  stall_after->check(not_empty);
  text("--stall-pause", wanted->stall_pause, "DUR", "How long we do not campaign after that, 1m if missing; at most 1h")
      ->needs(stall_after);
  command
      .add_option("--progress-fd", wanted->command.progress_as,
                  "The descriptor that the command finds open, where each byte tells of progress")
      ->check(CLI::Range(3, 1023).description(""))
      ->type_name("FD")
      ->needs(stall_after);
  auto* const http = text("--http", wanted->http, "HOST:PORT",
                          "Tell of ourselves there: /leader, /healthz, /metrics and more; no TLS");
  http->check(not_empty);
  command
      .add_option("--http-host", wanted->http_hosts,
                  "A name by which others ask there; localhost, our own name and numbers will do without")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->needs(http);
  text("--step-down-token-file", wanted->step_down_token_file, "FILE",
       "A file with the bearer token of POST /step-down; without it nobody may")
      ->needs(http);
  choice(
      "--log", wanted->log, "warning|info|json",
      "What we say on stderr, info if missing: warnings alone; or also for whom we wait, that we lead and why it ends; "
      "or all that as JSON, an object per line");
  text("--on-elected", wanted->command.on_elected, "CMD", "A shell command to run before it");
  text("--on-ousted", wanted->command.on_ousted, "CMD", "A shell command to run after it");
  command.add_option("command", wanted->command.words, "The command and its arguments, after --")
      ->required()
      ->type_name("-- CMD ARGS...");
  command.footer(R"(Example:
  tenure run -e reports --store redis://cache --grace 5s -- ./reports --verbose

The command finds TENURE_ELECTION, TENURE_ID, TENURE_TOKEN and TENURE_STORE (without secrets) in its environment, and no
TENURE_URL. Signals reach it; after SIGTERM it has --grace to end. Exit codes: that of the command, or 128+n if signal n
killed it or ended the wait; 64 wrong usage, 69 store unreachable until --wait was over, 70 the tool failed, 75 --wait was
over, 78 a setting cannot work, 79 the lead was lost (--once), 126 and 127 the command cannot be run or is not there.)");
  command.callback([wanted, &run] { run = [wanted] { return run_command(*wanted); }; });
}

}  // namespace tenure::tool
