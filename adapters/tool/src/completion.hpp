// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tenure::tool {

/// What may stand in place of the last of these words, which may be unfinished. The words follow the program's name.
std::vector<std::string> offered(const CLI::App& tool, std::vector<std::string> words);

}  // namespace tenure::tool
