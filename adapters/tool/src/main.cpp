// SPDX-License-Identifier: Apache-2.0
// Reads the command line, and turns what a command throws into an exit code.
#include <sys/prctl.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include <tenure/kit/logging.hpp>
#include <tenure/version.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "place.hpp"
#include "secrets.hpp"

namespace {

/// Each line of it, for a document may have many findings. What a server says may hold what a terminal would obey.
std::string printable_lines(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += (out.empty() ? "" : "\n") + tenure::printable(line, line.npos);
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace tenure::tool;
  ::prctl(PR_SET_DUMPABLE, 0);  // else the command, which has our user, may read TENURE_URL in /proc/PPID/environ
  // A parent may have left it ignored. Then the kernel would reap what we fork, and tell us of no end.
  std::signal(SIGCHLD, SIG_DFL);
  CLI::App tool("tenure: see and drive an election from outside", "tenure");
  tool.set_version_flag("--version", tenure::version());
  Run run;
  add_commands(tool, run);
  tool.failure_message([&tool, argc, argv](const CLI::App* app, const CLI::Error& e) {
    const auto strange = strange_word(tool, {argv + 1, argv + argc});
    if (strange.empty()) return without_secrets(CLI::FailureMessage::simple(app, e), argc, argv);
    return "tenure: " + strange + "\nRun with --help for more information.\n";
  });
  try {
    tool.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return tool.exit(e) == 0 ? ok : usage;
  }
  hide_from_ps(argc, argv);
  return run();
} catch (const tenure::tool::Failed& e) {
  std::cerr << "tenure: " << printable_lines(e.what()) << std::endl;
  return e.code;
} catch (const std::exception& e) {
  std::cerr << "tenure: " << tenure::printable(e.what()) << std::endl;
  return tenure::tool::broken;
}
