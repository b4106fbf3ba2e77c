// SPDX-License-Identifier: Apache-2.0
// Goal: the man page and the completions know every command and every option, by the words of --help; programs that
// read them find no fault. Method: compares the texts, and asks groff, bash and zsh.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"
#include "manual.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {
namespace {

/// Words with one blank between them, without what troff reads as an order.
std::string plain(std::string text) {
  text = std::regex_replace(text, std::regex(R"(\\f[BIR])"), "");
  text = std::regex_replace(text, std::regex(R"(\\\(aq)"), "'");
  text = std::regex_replace(text, std::regex(R"(\\&)"), "");
  text = std::regex_replace(text, std::regex(R"(\\(.))"), "$1");
  return std::regex_replace(text, std::regex(R"(\s+)"), " ");
}

class Manual : public ::testing::Test {
 protected:
  Manual() : tool("tenure", "tenure") { tool::add_commands(tool, run); }

  /// Calls it for every command, also for those below commands.
  template <class See>
  static void each(const CLI::App& app, const See& see) {
    for (const auto* command : app.get_subcommands({})) {
      see(*command);
      each(*command, see);
    }
  }
  static std::vector<std::string> names(const CLI::Option& option) {
    std::vector<std::string> out;
    for (const auto& name : option.get_snames()) out.push_back("-" + name);
    for (const auto& name : option.get_lnames()) out.push_back("--" + name);
    return out;
  }

  tool::Run run;
  CLI::App tool;
};

TEST_F(Manual, ThePageSaysWhatHelpSays) {
  const auto page = plain(tool::man_page(tool));
  int options = 0;
  each(tool, [&](const CLI::App& command) {
    const auto help = plain(command.help());
    for (const auto& text : {command.get_name(), plain(command.get_description()), plain(command.get_footer())}) {
      EXPECT_TRUE(mentions(page, text)) << text;
    }
    EXPECT_TRUE(mentions(help, plain(command.get_description())));
    for (const auto* option : command.get_options()) {
      ++options;
      EXPECT_TRUE(mentions(help, plain(option->get_description()))) << option->get_name();
      EXPECT_TRUE(mentions(page, plain(option->get_description()))) << option->get_name();
      for (const auto& name : names(*option)) {
        EXPECT_TRUE(mentions(help, name)) << command.get_name() << " " << name;
        EXPECT_TRUE(mentions(page, name)) << command.get_name() << " " << name;
      }
    }
  });
  EXPECT_GT(options, 40);
  EXPECT_TRUE(mentions(page, plain(tool.get_footer())));
}

TEST_F(Manual, TheShellsKnowEveryOption) {
  const auto bash = tool::bash_completion(tool), zsh = tool::zsh_completion(tool);
  each(tool, [&](const CLI::App& command) {
    EXPECT_TRUE(mentions(bash, " " + command.get_name())) << command.get_name();
    EXPECT_TRUE(mentions(zsh, "'" + command.get_name() + ":")) << command.get_name();
    for (const auto* option : command.get_options())
      for (const auto& name : names(*option)) {
        EXPECT_TRUE(mentions(bash, name)) << command.get_name() << " " << name;
        EXPECT_TRUE(mentions(zsh, name + "[")) << command.get_name() << " " << name;
      }
  });
}

bool there(const std::string& program) { return Process({"sh", "-c", "command -v " + program}).ended() == 0; }

TEST_F(Manual, GroffTakesThePage) {
  if (!there("groff")) GTEST_SKIP() << "needs groff (Debian: apt install groff-base)";
  const Scratch scratch;
  Process groff({"groff", "-man", "-Tutf8", "-ww", scratch.file("tenure.1", tool::man_page(tool))});
  EXPECT_EQ(groff.ended(), 0);
  EXPECT_EQ(groff.err(), "");
  EXPECT_TRUE(mentions(groff.out(), "tenure run -e reports")) << "examples keep their lines";
}

/// What bash would offer for the last of these words.
std::string offered(const std::string& completion, const std::string& words) {
  const Scratch scratch;
  const auto script =
      scratch.file("ask", completion + "\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n" +
                              "compopt() { echo files; }\n_tenure\necho \"${COMPREPLY[*]}\"\n");
  Process bash({"bash", script});
  EXPECT_EQ(bash.ended(), 0);
  EXPECT_EQ(bash.err(), "");
  return bash.out();
}

TEST_F(Manual, BashOffersWhatMayFollow) {
  const auto completion = tool::bash_completion(tool);
  EXPECT_EQ(offered(completion, "tenure st"), "status step-down\n");
  EXPECT_EQ(offered(completion, "tenure status --ti"), "--timing --timeout\n");
  EXPECT_EQ(offered(completion, "tenure run --timing ''"), "fast balanced steady\n");
  EXPECT_EQ(offered(completion, "tenure run --on-lost k"), "kill\n");
  EXPECT_EQ(offered(completion, "tenure config ch"), "check\n");
  EXPECT_EQ(offered(completion, "tenure completion z"), "zsh\n");
  EXPECT_TRUE(mentions(offered(completion, "tenure run --password-file x"), "files"));
  EXPECT_TRUE(mentions(offered(completion, "tenure config check ''"), "files"));
  EXPECT_EQ(offered(completion, "tenure run -e e -- compge"), "compgen\n") << "the command that is run";
}

TEST_F(Manual, ZshTakesItsCompletion) {
  if (!there("zsh")) GTEST_SKIP() << "needs zsh (Debian: apt install zsh)";
  const Scratch scratch;
  const auto file = scratch.file("_tenure", tool::zsh_completion(tool));
  Process syntax({"zsh", "-f", "-n", file});
  EXPECT_EQ(syntax.ended(), 0);
  EXPECT_EQ(syntax.err(), "");
  // _arguments is not there outside of a completion, so it is made to tell what it was given.
  Process calls({"zsh", "-f", "-c",
                 "_arguments() { print -l -- $@; }; _describe() { print -l -- ${(P)2}; }; source " + file +
                     " >/dev/null; _tenure_commands; _tenure_config_check"});
  EXPECT_EQ(calls.ended(), 0);
  EXPECT_EQ(calls.err(), "");
  EXPECT_TRUE(mentions(calls.out(), "step-down:Ask the leader to hand over"));
  EXPECT_TRUE(mentions(calls.out(), ":FILE:_files"));
}

// ---- what documents show ----

/// Blocks of code of a document, and code between its words.
std::string code_of(const std::string& document) {
  static const std::regex code("```[a-z]*\n([^]*?)```|`([^`\n]+)`");
  std::string out;
  for (std::sregex_iterator at(document.begin(), document.end(), code), end; at != end; ++at)
    out += ((*at)[1].matched ? (*at)[1].str() : (*at)[2].str()) + "\n";
  return out;
}

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  for (const auto* one : app.get_subcommands({}))
    if (one->check_name(name)) return one;
  return nullptr;
}

/// What of the tool's commands in a document is not there: a command, or an option before the command that is run.
std::vector<std::string> strange_commands(const CLI::App& tool, const std::string& document) {
  static const std::regex line("(?:^|\n|\\$ |/tool/)tenure ([a-z][^\n#]*)");
  std::vector<std::string> out;
  const auto code = code_of(document);
  for (std::sregex_iterator at(code.begin(), code.end(), line), end; at != end; ++at) {
    std::istringstream words((*at)[1].str());
    const auto* command = &tool;
    bool named = false;
    for (std::string word; words >> word && word != "--";) {
      if (const auto* next = word[0] == '-' ? nullptr : subcommand(*command, word)) {
        command = next, named = true;
      } else if (!named || (word[0] == '-' && !command->get_option_no_throw(word.substr(0, word.find('='))))) {
        out.push_back(word);
        break;
      }
    }
  }
  return out;
}

TEST_F(Manual, EveryCommandOfADocumentIsThere) {
  EXPECT_EQ(strange_commands(tool, "```sh\ntenure run -e x --store y -- z --what\n```\n`tenure config show F --time`"),
            std::vector<std::string>{"--time"});
  EXPECT_EQ(strange_commands(tool, "```\n$ tenure runs -e x\nb/tool/tenure status --al # --x\n```\n"),
            (std::vector<std::string>{"runs", "--al"}));
  std::size_t seen = 0;
  for (const auto* path : {"README.md", "adapters/tool/README.md", "docker/operating.md", "docker/README.md"}) {
    const auto document = contents(TENURE_SERVICE "/../../" + std::string(path));
    seen += document.size();
    for (const auto& word : strange_commands(tool, document)) ADD_FAILURE() << path << " names " << word;
  }
  EXPECT_GT(seen, 30'000u);
}

// ---- what docker/service has for systemd and Kubernetes ----

const std::string service = TENURE_SERVICE;  // the folder

/// Of these lines each option that `run` is given.
std::vector<std::string> options_in(const std::string& text) {
  std::vector<std::string> out;
  const std::regex option(R"((?:^|[ \t])(--[a-z][-a-z]*))");
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), option), end; it != end; ++it) out.push_back((*it)[1]);
  }
  return out;
}

TEST_F(Manual, TheUnitAndTheManifestGiveOptionsThatThereAre) {
  const auto* command = tool.get_subcommand("run");
  for (const auto* file : {"/tenure@.service", "/sidecar.yaml"}) {
    const auto options = options_in(contents(service + file));
    EXPECT_GE(options.size(), 1u) << file;
    for (const auto& option : options)
      EXPECT_NE(command->get_option_no_throw(option), nullptr) << file << " " << option;
  }
}

TEST_F(Manual, SystemdTakesTheUnit) {
  if (!there("systemd-analyze")) GTEST_SKIP() << "needs systemd-analyze (Debian: apt install systemd)";
  auto text = contents(service + "/tenure@.service");
  text.replace(text.find("/usr/bin/tenure"), 15, "/usr/bin/true");  // it must be there
  const Scratch scratch;
  scratch.file("tenure@reports.service", text);
  Process verify({"systemd-analyze", "verify", "--man=no", (scratch / "tenure@reports.service").string()});
  EXPECT_EQ(verify.ended(), 0) << verify.err();
  EXPECT_EQ(verify.err(), "");
}

TEST_F(Manual, TheManifestIsYamlWithBothProbes) {
  Process read({"/usr/bin/python3", "-c",
                "import sys, yaml\n"
                "deployment, service = yaml.safe_load_all(open(sys.argv[1]))\n"
                "spec = deployment['spec']['template']['spec']\n"
                "tool = [c for c in spec['containers'] if c['name'] == 'tenure'][0]\n"
                "print(tool['livenessProbe']['httpGet']['path'], tool['readinessProbe']['httpGet']['path'])\n"
                "assert deployment['spec']['selector']['matchLabels'] == service['spec']['selector']\n"
                "assert all(isinstance(word, str) for word in tool['command'])\n"
                "mounts = {m['name'] for m in tool['volumeMounts']}\n"
                "assert mounts <= {v['name'] for v in spec['volumes']}\n",
                service + "/sidecar.yaml"});
  const auto code = read.ended();
  if (mentions(read.err(), "No module named 'yaml'")) GTEST_SKIP() << "needs python3-yaml";
  EXPECT_EQ(code, 0) << read.err();
  EXPECT_EQ(read.out(), "/healthz /leader\n");
}

}  // namespace
}  // namespace tenure::test
