// SPDX-License-Identifier: Apache-2.0
#include "manual.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "commands.hpp"
#include "exit_code.hpp"

namespace tenure::tool {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands({}); }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

/// "-e", "--election".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> out;
  for (const auto& name : option.get_snames()) out.push_back("-" + name);
  for (const auto& name : option.get_lnames()) out.push_back("--" + name);
  return out;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// "fast|balanced|steady" -> "fast balanced steady"; empty if anything may be given.
std::string choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return type.find('|') == type.npos ? "" : replaced(type, "|", " ");
}

/// What belongs to an option, as --help has it: its default and its variable.
std::string remarks(const CLI::Option& option) {
  std::string out;
  if (!option.get_default_str().empty()) out += " The default is " + option.get_default_str() + ".";
  if (!option.get_envname().empty()) out += " The variable " + option.get_envname() + " stands for it.";
  return out;
}

// ---- man ----

/// Text that troff takes as it is. A line that begins with a dot would be an order.
std::string troff(const std::string& text) {
  auto out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(replaced(out, "'", "\\(aq"), "\n.", "\n\\&.");
  return out.starts_with('.') ? "\\&" + out : out;
}

void append_options(std::string& out, const CLI::App& app) {
  for (const auto* option : app.get_options()) {
    const auto names = names_of(*option);
    out += ".TP\n";
    for (std::size_t i = 0; i < names.size(); ++i) out += (i ? ", " : "") + ("\\fB" + troff(names[i]) + "\\fR");
    if (names.empty() || takes_value(*option))
      out += (names.empty() ? "\\fI" : " \\fI") + troff(option->get_type_name()) + "\\fR";
    out += "\n" + troff(option->get_description() + "." + remarks(*option)) + "\n";
  }
}

/// A text that keeps its lines.
void append_footer(std::string& out, const CLI::App& app) {
  if (!app.get_footer().empty()) out += ".PP\n.nf\n" + troff(app.get_footer()) + "\n.fi\n";
}

void append_command(std::string& out, const CLI::App& app, const std::string& before) {
  const auto name = before + app.get_name();
  out += ".SS " + troff(name) + "\n" + troff(app.get_description()) + ".\n";
  append_options(out, app);
  append_footer(out, app);
  for (const auto* command : commands_of(app)) append_command(out, *command, name + " ");
}

// ---- bash ----

std::string words_of(const CLI::App& app) {
  std::string out;
  for (const auto* option : app.get_options())
    if (names_of(*option).empty() && !choices_of(*option).empty()) out += " " + choices_of(*option);
  for (const auto* command : commands_of(app)) out += " " + command->get_name();
  for (const auto* option : app.get_options())
    for (const auto& name : names_of(*option)) out += " " + name;
  return out.empty() ? out : out.substr(1);
}

/// One case per command: what may follow, and of which option what follows is known.
void append_bash(std::string& out, const CLI::App& app, const std::string& path) {
  out += "  '" + path + "') words='" + words_of(app) + "'\n    case $prev in\n";
  for (const auto* option : app.get_options()) {
    if (names_of(*option).empty() || !takes_value(*option)) continue;
    std::string names;
    for (const auto& name : names_of(*option)) names += (names.empty() ? "" : "|") + name;
    const auto choices = choices_of(*option);
    if (option->get_type_name() == "FILE")
      out += "    " + names + ") compopt -o default; return ;;\n";
    else
      out.append("    ").append(names).append(") words='").append(choices).append("' ;;\n");
  }
  out += "    esac\n";
  for (const auto* option : app.get_options())
    if (names_of(*option).empty() && option->get_type_name() == "FILE") out += "    compopt -o default\n";
  out += "    ;;\n";
  for (const auto* command : commands_of(app)) append_bash(out, *command, path + " " + command->get_name());
}

void append_paths(std::string& out, const CLI::App& app, const std::string& path) {
  for (const auto* command : commands_of(app)) {
    const auto deeper = path + " " + command->get_name();
    out += "    '" + deeper + "') path=$path' '${COMP_WORDS[i]} ;;\n";
    append_paths(out, *command, deeper);
  }
}

// ---- zsh ----

std::string zsh_text(const std::string& text) {
  auto out = replaced(text, "\\", "\\\\");
  for (const char* special : {"[", "]", ":"}) out = replaced(out, special, std::string("\\") + special);
  return replaced(out, "'", "'\\''");
}

std::string zsh_value(const CLI::Option& option) {
  if (!takes_value(option)) return "";
  const auto type = option.get_type_name();
  const auto choices = choices_of(option);
  if (!choices.empty()) return ":value:(" + choices + ")";
  return ":" + zsh_text(type) + ":" + (type == "FILE" ? "_files" : "");
}

void append_zsh(std::string& out, const CLI::App& app, const std::string& function) {
  const auto commands = commands_of(app);
  out += function + "() {\n  _arguments -S -C";
  for (const auto* option : app.get_options()) {
    const auto names = names_of(*option);
    std::string all;
    for (const auto& name : names) all += (all.empty() ? "" : " ") + name;
    const auto what = "[" + zsh_text(option->get_description()) + "]" + zsh_value(*option);
    for (const auto& name : names)
      out.append(" \\\n    '(").append(all).append(")").append(name).append(what).append("'");
    if (names.empty())
      out += option->get_type_name() == "FILE" ? " \\\n    ':FILE:_files'" : " \\\n    '*:::command:_normal'";
  }
  if (!commands.empty()) out += " \\\n    ':command:" + function + "_commands' '*:::argument:" + function + "_rest'";
  out += "\n}\n";
  if (commands.empty()) return;
  out += function + "_commands() {\n  local -a all=(";
  for (const auto* command : commands)
    out += "\n    '" + command->get_name() + ":" + zsh_text(command->get_description()) + "'";
  out += ")\n  _describe command all\n}\n" + function + "_rest() {\n  case $words[1] in\n";
  for (const auto* command : commands)
    out += "  " + command->get_name() + ") " + function + "_" + replaced(command->get_name(), "-", "_") + " ;;\n";
  out += "  esac\n}\n";
  for (const auto* command : commands)
    append_zsh(out, *command, function + "_" + replaced(command->get_name(), "-", "_"));
}

}  // namespace

std::string man_page(const CLI::App& tool) {
  std::string out = ".TH TENURE 1\n.SH NAME\ntenure \\- see and drive an election from outside\n.SH SYNOPSIS\n";
  out += ".B tenure\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH OPTIONS\n";
  append_options(out, tool);
  out += ".SH COMMANDS\n";
  for (const auto* command : commands_of(tool)) append_command(out, *command, "");
  out += ".SH EXAMPLES AND SECRETS\n";
  append_footer(out, tool);
  return out;
}

std::string bash_completion(const CLI::App& tool) {
  std::string out = R"(# bash completion of tenure; written by: tenure completion bash
_tenure() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} path='' words='' i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then # the command that tenure runs
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      else
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      fi
      return
    fi
    case "$path ${COMP_WORDS[i]}" in
)";
  append_paths(out, tool, "");
  out += "    esac\n  done\n  case $path in\n";
  append_bash(out, tool, "");
  out += "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\ncomplete -F _tenure tenure\n";
  return out;
}

std::string zsh_completion(const CLI::App& tool) {
  std::string out = "#compdef tenure\n# written by: tenure completion zsh\n";
  append_zsh(out, tool, "_tenure");
  return out + "_tenure \"$@\"\n";
}

void add_manual(CLI::App& tool, Run& run) {
  auto& manual = *tool.add_subcommand("manual", "Print the man page, for instance into tenure.1");
  manual.callback([&tool, &run] { run = [&tool] { return std::cout << man_page(tool) << std::flush, ok; }; });
  auto& completion = *tool.add_subcommand("completion", "Print what a shell needs to complete our command line");
  const auto shell = std::make_shared<std::string>();
  completion.add_option("SHELL", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""))
      ->type_name("bash|zsh");
  completion.footer(R"(Examples:
  tenure completion bash >~/.local/share/bash-completion/completions/tenure
  tenure completion zsh  >~/.zfunc/_tenure)");
  completion.callback([&tool, &run, shell] {
    run = [&tool, shell] {
      return std::cout << (*shell == "bash" ? bash_completion(tool) : zsh_completion(tool)) << std::flush, ok;
    };
  });
}

}  // namespace tenure::tool
