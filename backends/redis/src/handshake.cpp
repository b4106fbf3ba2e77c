// SPDX-License-Identifier: Apache-2.0
// Sends the first commands, and explains a refusal.
#include "handshake.hpp"

#include <algorithm>

namespace tenure::redis {

std::optional<Error> shake_hands(Wire& wire, const std::vector<HandshakeStep>& steps) {
  if (steps.empty()) return std::nullopt;
  std::vector<Command> commands;
  commands.reserve(steps.size());
  for (const auto& step : steps) commands.push_back(step.command);
  if (auto error = wire.send(commands)) return error;
  for (const auto& step : steps) {
    const auto answer = wire.receive();
    if (!answer) return answer.error();
    if (auto error = step.check(*answer)) return error;
  }
  return std::nullopt;
}

void add_auth(std::vector<HandshakeStep>& steps, const Wire& wire, const std::string& user,
              const std::string& password) {
  if (password.empty()) return;
  steps.push_back({user.empty() ? Command{"AUTH", password} : Command{"AUTH", user, password},
                   [where = wire.name()](const Reply& reply) -> std::optional<Error> {
                     if (!reply.is_error()) return std::nullopt;
                     return explained(reply.text, where, false, "AUTH");
                   }});
}

void add_client_name(std::vector<HandshakeStep>& steps, const Wire& wire, const std::string& name) {
  steps.push_back(
      {{"CLIENT", "SETNAME", name}, [where = wire.name()](const Reply& reply) { return refused_all(reply, where); }});
}

std::optional<Error> refused_all(const Reply& reply, const std::string& where) {
  const auto code = code_of(reply.text);
  const bool full = reply.text.find("max number of clients") != reply.text.npos;
  if (!reply.is_error() || (code != "NOAUTH" && code != "DENIED" && !full)) return std::nullopt;
  return explained(reply.text, where, false);
}

std::string client_name(const std::string& election, const std::string& candidate) {
  auto name = "tenure:" + election + (candidate.empty() ? "" : ":" + candidate);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < '!' || c > '~'; }, '_');
  return name;
}

Error explained(const Reply& reply, const std::string& password, const std::string& where, std::string_view command) {
  const bool repeats = !password.empty() && reply.text.find(password) != reply.text.npos;
  return explained(reply.text, where, !repeats, command);
}

}  // namespace tenure::redis
