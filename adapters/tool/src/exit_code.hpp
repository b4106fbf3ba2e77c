// SPDX-License-Identifier: Apache-2.0
// What the tool says by its exit code.
#pragma once

namespace tenure::tool {

/// What the tool itself says by its exit code. They follow sysexits.h where that has a word for it, so that they seldom
/// meet a code of the child. A child's own code is handed on, and 128+n of a signal n.
enum ExitCode : int {
  ok = 0,
  no = 1,              ///< is-leader: another one leads, or nobody; step-down: the token is another one by now;
                       ///< retire: one of them is led, or cannot be read.
  vacant = 3,          ///< status: nobody leads.
  unseen = 4,          ///< status, is-leader, step-down: nothing said who leads.
  usage = 64,          ///< The command line is wrong.
  unreachable = 69,    ///< run, step-down, retire, setup: the store cannot be reached, or refuses us.
  broken = 70,         ///< The tool itself failed: no process or descriptor was left, or its supervisor was killed.
  waited = 75,         ///< --wait is over.
  misconfigured = 78,  ///< The URL, the configuration or a setting cannot work.
  lost = 79,           ///< run --once: the lead was lost, and the command was ended.
  not_run = 126,       ///< run: the command cannot be executed.
  not_found = 127,     ///< run: there is no such command.
  by_signal = 128      ///< And the signal's number.
};

}  // namespace tenure::tool
