// SPDX-License-Identifier: Apache-2.0
// What a group does on the server, each in one step.
#pragma once
#include "reply.hpp"

namespace tenure::redis {

/// Their keys are the group's sessions (a hash), its leads (a hash) and its log (a stream).
///
/// sessions: id -> "beat ended written_ms" and what only we read. leads: election -> "token session released heir" and
/// perhaps a request to step down. Both have the marker in the field '', which no election and no session can have: "1
/// " (the format) and the number. If the two are not equal, the group counts as empty. sessions also has 'next': the
/// token that follows all retired ones.
///
/// log: an entry for each commit that changed leads, and for whatever is pushed. Its fields are the beat of the write
/// and the elections. The channel of the pushes is the log's key.
extern const Script look_script, page_script, open_script, commit_script, end_script, sweep_script, retire_script,
    step_down_lead_script;

}  // namespace tenure::redis
