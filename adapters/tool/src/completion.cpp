// SPDX-License-Identifier: Apache-2.0
// What a shell completes. The shell asks us with each TAB, and we look at the options that the parser knows.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string_view>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/suggest.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "secrets.hpp"

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

/// Follows a command line word by word.
struct Reader {
  explicit Reader(const CLI::App& tool) : command(&tool) {}

  /// False: the word is neither an option, nor a value, nor a command where one must stand.
  bool read(const std::string& word) {
    if (std::exchange(before, nullptr)) return true;  // its value
    if (word.size() > 1 && word.starts_with('-')) {
      const auto* option = command->get_option_no_throw(word.substr(0, word.find('=')));
      if (option && takes_value(*option) && word.find('=') == word.npos) before = option;
      return option;
    }
    if (command->get_subcommands({}).empty()) return true;  // it may be a positional
    const auto* next = command_of(*command, word);
    if (next) command = next;
    return next;
  }

  const CLI::App* command;
  const CLI::Option* before{};  ///< The option whose value comes next.
};

}  // namespace

std::vector<std::string> offered(const CLI::App& tool, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  const std::string begun = words.back() == "=" ? "" : words.back();  // bash makes a word of "="
  words.pop_back();
  Reader reader(tool);
  for (const auto& word : words) {
    if (word == "--") return {};  // the command that we run
    if (word != "=") reader.read(word);
  }
  std::vector<std::string> all;
  if (reader.before)
    add_choices(all, *reader.before);
  else
    all = words_of(*reader.command);
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(begun); });
  return all;
}

std::string strange_word(const CLI::App& tool, const std::vector<std::string>& words) {
  Reader reader(tool);
  for (const auto& word : words) {
    if (word == "--") break;
    if (reader.read(word)) continue;
    const auto harmless = shown(word), name = harmless.substr(0, harmless.find('='));
    const auto known = words_of(*reader.command);
    const std::vector<std::string_view> names(known.begin(), known.end());
    return (name.starts_with('-') ? "there is no option " : "there is no command ") + printable(name, 40) +
           did_you_mean(name, names);
  }
  return {};
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
