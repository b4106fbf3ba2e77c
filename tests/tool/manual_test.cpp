// SPDX-License-Identifier: Apache-2.0
// Goal: the man page and the completions know every command and every option; documents, the unit and the manifest name
// no other. Method: asks groff, bash, zsh and systemd, and compares with what the parser knows.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {
namespace {

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

bool there(const std::string& program) { return Process({"sh", "-c", "command -v " + program}).ended() == 0; }

TEST_F(Manual, ThePageHasEveryCommandAndOption) {
#ifndef TENURE_MAN_PAGE
  GTEST_SKIP() << "needs help2man (Debian: apt install help2man)";
#else
  if (!there("groff")) GTEST_SKIP() << "needs groff (Debian: apt install groff-base)";
  Process groff({"groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-ww", TENURE_MAN_PAGE});
  EXPECT_EQ(groff.ended(), 0);
  EXPECT_EQ(groff.err(), "");
  const auto page = groff.out();
  int options = 0;
  each(tool, [&](const CLI::App& command) {
    if (command.get_group().empty()) return;  // it is hidden
    EXPECT_TRUE(mentions(page, command.get_name())) << command.get_name();
    for (const auto* option : command.get_options())
      for (const auto& name : names(*option)) {
        ++options;
        EXPECT_TRUE(mentions(page, name)) << command.get_name() << " " << name;
      }
  });
  EXPECT_GT(options, 40);
#endif
}

/// What the tool offers for the last word.
std::string offered(const CLI::App& tool, std::vector<std::string> words) {
  std::string out;
  for (const auto& word : tool::offered(tool, std::move(words))) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST_F(Manual, WhatMayFollowIsOffered) {
  EXPECT_TRUE(mentions(tool.help(), "Examples:"));
  EXPECT_EQ(offered(tool, {"st"}), "status step-down");
  EXPECT_EQ(offered(tool, {"comple"}), "completion") << "the other one is for shells alone";
  EXPECT_EQ(offered(tool, {"status", "--ti"}), "--timing --timeout");
  EXPECT_EQ(offered(tool, {"run", "--once", "--timing", ""}), "fast balanced steady");
  EXPECT_EQ(offered(tool, {"run", "--on-lost", "=", "k"}), "kill") << "as bash splits --on-lost=k";
  EXPECT_EQ(offered(tool, {"run", "--on-lost", "="}), "term kill");
  EXPECT_EQ(offered(tool, {"run", "-e", "status", "--on"}), "--once --on-lost --on-elected --on-ousted")
      << "an election may have the name of a command";
  EXPECT_EQ(offered(tool, {"config", "ch"}), "check");
  EXPECT_EQ(offered(tool, {"completion", "z"}), "zsh");
  EXPECT_EQ(offered(tool, {"run", "--password-file", "x"}), "") << "the shell then offers files";
  EXPECT_EQ(offered(tool, {"run", "-e", "e", "--", "--o"}), "") << "the command that is run";
  EXPECT_EQ(offered(tool, {}), offered(tool, {""}));
  each(tool, [&](const CLI::App& command) {
    if (command.get_parent() != &tool || command.get_group().empty()) return;
    const auto all = " " + offered(tool, {command.get_name(), ""}) + " ";
    for (const auto* option : command.get_options())
      for (const auto& name : names(*option)) EXPECT_TRUE(mentions(all, " " + name + " ")) << command.get_name() << all;
  });
}

/// What the shell gets for a line with an empty word in it, and then for one where we know nothing.
std::string asked_by(const std::string& shell, const std::string& words, const std::string& ask) {
  Process completion(tool({"completion", shell}));
  EXPECT_EQ(completion.ended(), 0);
  const Scratch scratch;
  const auto file = scratch.file("completion", completion.out());
  std::string script;
  for (const auto* line : {"run -e '' --on-lost t", "run --password-file ''"})
    script += words + "=('" TENURE_TOOL_PROGRAM "' " + line + ")\n" + ask + "\n";
  Process asks({shell, scratch.file("ask", "source_it() { . " + file + "; }\n" + script)});
  EXPECT_EQ(asks.ended(), 0);
  EXPECT_EQ(asks.err(), "");
  return asks.out();
}

TEST_F(Manual, BashAsksTheTool) {
  const std::string ask =
      "source_it\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tenure \"$COMP_WORDS\"\n"
      "echo \"<${COMPREPLY[*]}>\"";
  EXPECT_EQ(asked_by("bash", "COMP_WORDS", ask), "<term>\n<>\n");
}

TEST_F(Manual, ZshAsksTheTool) {
  if (!there("zsh")) GTEST_SKIP() << "needs zsh (Debian: apt install zsh)";
  const std::string ask = "compadd() { print -- $@; }\n_files() { print files; }\nCURRENT=$#words\nsource_it";
  EXPECT_EQ(asked_by("zsh", "words", ask), "-- term\nfiles\n");
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
  // 3.0 is what it calls "OK"; 10 has no sandbox at all.
  Process security({"systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=30",
                    (scratch / "tenure@reports.service").string()});
  EXPECT_EQ(security.ended(), 0) << security.out() << security.err();
}

TEST_F(Manual, TheManifestLetsARollOutEndAndLeadsToTheLeader) {
  Process read({"/usr/bin/python3", "-c",
                "import sys, yaml\n"
                "objects = {o['kind']: o for o in yaml.safe_load_all(open(sys.argv[1]))}\n"
                "deployment, service = objects['Deployment'], objects['Service']\n"
                "spec = deployment['spec']['template']['spec']\n"
                "tool = [c for c in spec['containers'] if c['name'] == 'tenure'][0]\n"
                "print(tool['livenessProbe']['httpGet']['path'], tool['readinessProbe']['httpGet']['path'])\n"
                "labels = dict(service['spec']['selector'])\n"
                "label = 'tenure-leader=' + labels.pop('tenure-leader')\n"
                "assert labels == deployment['spec']['selector']['matchLabels']\n"
                "words = dict(w.split('=', 1) for w in tool['command'] if w.startswith('--') and '=' in w)\n"
                "assert words['--on-elected'].endswith(' ' + label)\n"
                "assert words['--on-ousted'].endswith(' tenure-leader-')\n"
                "assert words['--http-host'] == service['metadata']['name']\n"
                "assert spec['securityContext']['runAsNonRoot']\n"
                "for c in spec['containers']:\n"
                "  assert c['securityContext']['capabilities'] == {'drop': ['ALL']}\n"
                "  assert not c['securityContext']['allowPrivilegeEscalation']\n"
                "role = objects['RoleBinding']\n"
                "assert role['subjects'][0]['name'] == spec['serviceAccountName'] == "
                "objects['ServiceAccount']['metadata']['name']\n"
                "assert role['roleRef']['name'] == objects['Role']['metadata']['name']\n"
                "assert all(isinstance(word, str) for word in tool['command'])\n"
                "mounts = {m['name'] for m in tool['volumeMounts']}\n"
                "assert mounts <= {v['name'] for v in spec['volumes']}\n",
                service + "/sidecar.yaml"});
  const auto code = read.ended();
  if (mentions(read.err(), "No module named 'yaml'")) GTEST_SKIP() << "needs python3-yaml";
  EXPECT_EQ(code, 0) << read.err();
  EXPECT_EQ(read.out(), "/healthz /readyz\n");
}

}  // namespace
}  // namespace tenure::test
