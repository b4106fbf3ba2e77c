// SPDX-License-Identifier: Apache-2.0
// Every source of the program candidate_broken includes it.
#pragma once

namespace tenure::test {

/// Whether this rule is broken: the program was started by the name "candidate_" and the rule's, in small letters.
bool broken(const char* rule);

}  // namespace tenure::test
