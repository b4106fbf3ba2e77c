// SPDX-License-Identifier: Apache-2.0
// What may be shown of a store's address, and to whom.
#pragma once
#include <string>
#include <string_view>

namespace tenure::tool {

/// The URL without user, password and the values of all but a few harmless keys of its query. It takes away too much
/// rather than too little: of a text with an '@', all from the scheme to the last '@' is gone.
std::string shown(std::string_view url);

/// The message, with each word of the command line that it quotes as shown().
std::string without_secrets(std::string message, int argc, const char* const* argv);

/// Overwrites the secrets of the URLs in a command line by '*', so that ps shows none.
void hide_from_ps(int argc, char** argv);

}  // namespace tenure::tool
