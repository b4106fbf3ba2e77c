// SPDX-License-Identifier: Apache-2.0
#include "greeting.hpp"

#include <algorithm>

namespace tenure::redis {

std::optional<Error> greet(Wire& wire, const std::vector<Question>& questions) {
  if (questions.empty()) return std::nullopt;
  std::vector<Command> commands;
  commands.reserve(questions.size());
  for (const auto& question : questions) commands.push_back(question.command);
  if (auto error = wire.send(commands)) return error;
  for (const auto& question : questions) {
    const auto answer = wire.receive();
    if (!answer) return answer.error();
    if (auto error = question.judge(*answer)) return error;
  }
  return std::nullopt;
}

void log_in(std::vector<Question>& questions, const Wire& wire, const std::string& user, const std::string& password) {
  if (password.empty()) return;
  questions.push_back({user.empty() ? Command{"AUTH", password} : Command{"AUTH", user, password},
                       [where = wire.name()](const Reply& reply) -> std::optional<Error> {
                         if (!reply.is_error()) return std::nullopt;
                         return refusal(reply.text, where, false);
                       }});
}

void introduce(std::vector<Question>& questions, const Wire& wire, const std::string& name) {
  questions.push_back({{"CLIENT", "SETNAME", name}, [where = wire.name()](const Reply& reply) -> std::optional<Error> {
                         const auto code = code_of(reply.text);
                         const bool full = reply.text.find("max number of clients") != reply.text.npos;
                         if (!reply.is_error() || code == "NOPERM" || (code == "ERR" && !full)) return std::nullopt;
                         return refusal(reply.text, where, true);
                       }});
}

std::string client_name(const std::string& election, const std::string& candidate) {
  auto name = "tenure:" + election + (candidate.empty() ? "" : ":" + candidate);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < '!' || c > '~'; }, '_');
  return name;
}

Error refused(const Reply& reply, const Options& options, const std::string& where) {
  const auto repeats = [&](const std::string& secret) {
    return !secret.empty() && reply.text.find(secret) != reply.text.npos;
  };
  return refusal(reply.text, where, !repeats(options.password) && !repeats(options.sentinel_password));
}

}  // namespace tenure::redis
