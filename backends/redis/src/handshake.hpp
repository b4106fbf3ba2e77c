// SPDX-License-Identifier: Apache-2.0
// The first commands on a connection, in one batch: together they cost one round trip.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "wire.hpp"

namespace tenure::redis {

struct HandshakeStep {
  Command command;
  std::function<std::optional<Error>(const Reply&)> check;
};

/// The error of the first step that fails, if any.
std::optional<Error> shake_hands(Wire& wire, const std::vector<HandshakeStep>& steps);

/// Adds AUTH; nothing without a password.
void add_auth(std::vector<HandshakeStep>& steps, const Wire& wire, const std::string& user,
              const std::string& password);

/// Judges the reply to a command that we can do without: a server that forbids or does not know it will do. An error
/// only if the server refuses the whole connection.
std::optional<Error> refused_all(const Reply& reply, const std::string& where);

/// Adds CLIENT SETNAME, which CLIENT LIST shows.
void add_client_name(std::vector<HandshakeStep>& steps, const Wire& wire, const std::string& name);

/// "tenure:ELECTION:CANDIDATE", with '_' for what a client's name cannot have.
std::string client_name(const std::string& election, const std::string& candidate);

/// An error that a server answered to this command. It may repeat what it was sent, but not our password there.
Error explained(const Reply& reply, const std::string& password, const std::string& where, std::string_view command);

}  // namespace tenure::redis
