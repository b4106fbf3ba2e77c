// SPDX-License-Identifier: Apache-2.0
// The tool's commands. Each adds its options, and sets `run` to what is done once the whole line has been read.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tenure::tool {

using Run = std::function<int()>;  ///< Returns the exit code. Throws Failed.

extern const char schema_text[];  ///< tenure.schema.json, word for word. CMake writes it.

void add_status(CLI::App& tool, Run& run);
void add_observe(CLI::App& tool, Run& run);
void add_is_leader(CLI::App& tool, Run& run);
void add_run(CLI::App& tool, Run& run);
void add_step_down(CLI::App& tool, Run& run);
void add_retire(CLI::App& tool, Run& run);
void add_setup(CLI::App& tool, Run& run);
void add_doctor(CLI::App& tool, Run& run);
void add_completion(CLI::App& tool, Run& run);
void add_config(CLI::App& tool, Run& run);

/// The whole tool, by which main() and the tests read a line.
void add_commands(CLI::App& tool, Run& run);

/// What is wrong with the first word that is no command or option of ours, and which one was meant. Empty: there is
/// none.
std::string strange_word(const CLI::App& tool, const std::vector<std::string>& words);

/// What may stand in place of the last of these words, which may be unfinished. The words follow the program's name.
std::vector<std::string> offered(const CLI::App& tool, std::vector<std::string> words);

}  // namespace tenure::tool
