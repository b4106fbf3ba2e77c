// SPDX-License-Identifier: Apache-2.0
// The list of the commands, and what --help says of all of them.
#include "commands.hpp"

#include <CLI/CLI.hpp>

namespace tenure::tool {

void add_commands(CLI::App& tool, Run& run) {
  tool.require_subcommand(1);
  tool.set_help_flag("-h,--help", "Print this help");
  add_run(tool, run);
  add_status(tool, run);
  add_observe(tool, run);
  add_is_leader(tool, run);
  add_step_down(tool, run);
  add_doctor(tool, run);
  add_setup(tool, run);
  add_retire(tool, run);
  add_config(tool, run);
  add_completion(tool, run);
  tool.set_help_all_flag("--help-all", "Print the help of every command");  // last, so that none of them inherits it
  tool.footer(R"(Examples:
  tenure run       -e reports --store redis://cache --id $(hostname) -- ./reports --verbose
  tenure status    -e reports --store redis://cache
  tenure status    --all --store postgres://db/app
  tenure observe   -e reports --store file:///run/elections --json
  tenure is-leader -e reports --store redis://cache --id $(hostname)
  tenure step-down -e reports --store redis://cache --why upgrade
  tenure doctor    --store postgres://db/app
  tenure setup     --store postgres://owner@db/app
  tenure retire    --store redis://cache --group shards "shard 17"
  tenure config    show reports.json

A password stands in a file (--password-file), in the document of -c, or in the URL of the variable TENURE_URL, which
stands for --store. Exit codes: 64 the command line is wrong, 69 the store cannot be reached, 78 a setting cannot work;
the others are told by each command's --help.)");
}

}  // namespace tenure::tool
