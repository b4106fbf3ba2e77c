// SPDX-License-Identifier: Apache-2.0
// What is generated from the texts of --help: the man page, and what shells complete.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace tenure::tool {

std::string man_page(const CLI::App& tool);
std::string bash_completion(const CLI::App& tool);
std::string zsh_completion(const CLI::App& tool);

}  // namespace tenure::tool
