// SPDX-License-Identifier: Apache-2.0
// What a shell completes. The shell asks us with each TAB, and we look at the options that the parser knows.
#include "completion.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <utility>

#include "commands.hpp"
#include "exit_code.hpp"

namespace tenure::tool {
namespace {

constexpr char bash[] = R"(# bash completion of tenure: tenure completion bash
_tenure() {
  mapfile -t COMPREPLY < <("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _tenure tenure
)";
constexpr char zsh[] = R"zsh(#compdef tenure
# zsh completion of tenure: tenure completion zsh
local -a offered=(${(f)"$("$words[1]" complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
(($#offered)) && compadd -- $offered || _files
)zsh";

const CLI::App* command_of(const CLI::App& app, const std::string& name) {
  for (const auto* one : app.get_subcommands({}))
    if (one->check_name(name)) return one;
  return nullptr;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// "fast|balanced|steady" has three. Where anything may be given there is none.
void add_choices(std::vector<std::string>& words, const CLI::Option& option) {
  const auto type = option.get_type_name();
  if (type.find('|') == type.npos) return;
  for (const auto& choice : CLI::detail::split(type, '|')) words.push_back(choice);
}

/// Commands and options of this command, and what may stand for its positionals.
std::vector<std::string> words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const auto* next : command.get_subcommands({}))
    if (!next->get_group().empty()) words.push_back(next->get_name());  // else it is hidden
  for (const auto* option : command.get_options()) {
    if (option->get_positional()) add_choices(words, *option);
    for (const auto& name : option->get_snames()) words.push_back("-" + name);
    for (const auto& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

}  // namespace

std::vector<std::string> offered(const CLI::App& tool, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  const std::string begun = words.back() == "=" ? "" : words.back();  // bash makes a word of "="
  words.pop_back();
  const auto* command = &tool;
  const CLI::Option* before = nullptr;  // The option whose value comes next.
  for (const auto& word : words) {
    if (word == "=") continue;
    if (word == "--") return {};  // the command that we run
    const bool is_value = std::exchange(before, nullptr);
    const auto* next = is_value ? nullptr : command_of(*command, word);
    if (next) command = next;
    if (is_value || next) continue;
    before = word.starts_with('-') ? command->get_option_no_throw(word) : nullptr;
    if (before && !takes_value(*before)) before = nullptr;
  }
  std::vector<std::string> all;
  if (before)
    add_choices(all, *before);
  else
    all = words_of(*command);
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(begun); });
  return all;
}

void add_completion(CLI::App& tool, Run& run) {
  auto& completion = *tool.add_subcommand("completion", "Print what a shell needs to complete our command line");
  const auto shell = std::make_shared<std::string>();
  completion.add_option("SHELL", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""))
      ->type_name("bash|zsh");
  completion.footer(R"(Examples:
  tenure completion bash >~/.local/share/bash-completion/completions/tenure
  tenure completion zsh  >~/.zfunc/_tenure)");
  completion.callback(
      [&run, shell] { run = [shell] { return std::cout << (*shell == "bash" ? bash : zsh) << std::flush, ok; }; });

  auto& complete = *tool.add_subcommand("complete", "Print what may stand in place of the last word")->group("");
  const auto words = std::make_shared<std::vector<std::string>>();
  complete.add_option("WORDS", *words, "The words of a command line, after --");
  complete.callback([&tool, &run, words] {
    run = [&tool, words] {
      for (const auto& word : offered(tool, *words)) std::cout << word << "\n";
      return std::cout << std::flush, ok;
    };
  });
}

}  // namespace tenure::tool
