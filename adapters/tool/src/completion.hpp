// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tenure::tool {

/// What is wrong with the first word that is no command or option of ours, and which one was meant. Empty: there is
/// none.
std::string strange_word(const CLI::App& tool, const std::vector<std::string>& words);

/// What may stand in place of the last of these words, which may be unfinished. The words follow the program's name.
std::vector<std::string> offered(const CLI::App& tool, std::vector<std::string> words);

}  // namespace tenure::tool
