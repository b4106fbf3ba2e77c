// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace tenure::tool {

/// Whether a person looks at this descriptor: it is a terminal that obeys.
bool is_terminal(int descriptor);
/// The same, and the user does not mind colours: NO_COLOR is not set.
bool is_coloured(int descriptor);

enum class Colour { good, doubtful, bad, faint };

/// As it is, where there is no colour. REQUIRES: the text is printable().
std::string painted(Colour colour, const std::string& text, int descriptor = 1);

}  // namespace tenure::tool
