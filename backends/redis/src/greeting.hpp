// SPDX-License-Identifier: Apache-2.0
// What is said to a server before the first question, in one batch: it costs one round trip, whatever it asks.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "wire.hpp"

namespace tenure::redis {

struct Question {
  Command command;
  std::function<std::optional<Error>(const Reply&)> judge;
};

/// The first answer that is an error, if any.
std::optional<Error> greet(Wire& wire, const std::vector<Question>& questions);

/// AUTH; nothing without a password.
void log_in(std::vector<Question>& questions, const Wire& wire, const std::string& user, const std::string& password);

/// What CLIENT LIST shows. A server that forbids it or does not know it is none the worse.
void introduce(std::vector<Question>& questions, const Wire& wire, const std::string& name);

/// "tenure:ELECTION:CANDIDATE", with '_' for what a client's name cannot have.
std::string client_name(const std::string& election, const std::string& candidate);

/// A refusal, which may repeat what it was sent, but not a password of ours.
Error refused(const Reply& reply, const Options& options, const std::string& where);

}  // namespace tenure::redis
