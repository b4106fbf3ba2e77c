// SPDX-License-Identifier: Apache-2.0
// A connection to one server: commands out, replies back.
#pragma once
#include <hiredis/hiredis.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/exchange.hpp>
#include <tenure/redis.hpp>

#include "reply.hpp"

namespace tenure::redis {

using Command = std::vector<std::string>;

/// How many addresses of one name are tried in one attempt to connect.
inline constexpr std::size_t most_addresses = 8;

/// What one reply may have at most, with all that is in it, so that no server can fill our memory.
struct ReplyLimit {
  std::size_t bytes, elements;
  const char* advice;  ///< What more than that means.
};

/// A record has less than 1 KiB, INFO some 10.
inline constexpr ReplyLimit record_limit{
    256 << 10, 1024, "far more than a record has; remove what somebody else wrote to the election's key"};

/// REQUIRES: one thread at a time.
class Wire {
 public:
  /// `name`: "redis 127.0.0.1:6379", for messages.
  explicit Wire(std::string name, const ReplyLimit& most = record_limit) : name_(std::move(name)), most_(most) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// The addresses of the host, for open(). Blocks while it resolves the name.
  Result<std::vector<Address>> resolve(const Address& to) const;
  /// Opens a socket, which begins to connect. REQUIRES: the host is an address.
  std::optional<Error> open(const Address& to);
  std::optional<Error> open(const std::string& socket);
  /// Blocks until the socket is connected, for `patience` at most. Without it, only its shutdown() ends that sooner.
  /// TLS comes with secure().
  std::optional<Error> connect(std::optional<Clock::Duration> patience = std::nullopt);
  /// Begins TLS, if the options ask for it.
  std::optional<Error> secure(const Options& options, const std::string& host);

  /// Each read and write ends by itself after this time, or never if it is zero.
  void set_patience(Clock::Duration patience);

  int descriptor() const;

  /// Sends all of them in one write.
  std::optional<Error> send(const std::vector<Command>& commands);
  Result<Reply> receive();

  /// From now on no read or write blocks, and all is asked by exchanges. One that is over() before its answer has come
  /// gets its no_answer(). Then the answer is owed: receive() returns it to whoever comes next.
  void unblock();
  Result<Reply> ask(const Command& command, const Exchange& exchange);
  Result<Reply> receive(const Exchange& exchange);
  /// How many answers are still to come.
  std::size_t owed() const { return owed_; }

  /// Returns the next reply that has come as a whole. If it returns nothing, call fill() first.
  Result<std::optional<Reply>> next();
  std::optional<Error> fill();

  Error broken(const std::string& what) const;
  const std::string& name() const { return name_; }

 private:
  std::optional<Error> opened(redisContext* context);
  std::optional<Error> append(const Command& command);
  Error too_much(const std::string& of_what) const;

  const std::string name_;
  const ReplyLimit most_;
  std::size_t elements_left_{};  ///< What the coming reply may still have. The reader of the context looks here.
  CHandle<redisContext, redisFree> context_;
  std::size_t received_{};  ///< Bytes of the reply that is coming.
  std::size_t owed_{};
};

// ---- the first commands on a connection, in one batch: together they cost one round trip ----

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
