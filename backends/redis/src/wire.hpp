// SPDX-License-Identifier: Apache-2.0
// A connection to one server: commands out, replies back.
#pragma once
#include <hiredis/hiredis.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/redis.hpp>

#include "reply.hpp"

namespace tenure::redis {

using Command = std::vector<std::string>;

/// The size of an answer is limited, so that no server can fill our memory. REQUIRES: one thread at a time uses it.
class Wire {
 public:
  /// `name` is for messages, such as "redis 127.0.0.1:6379".
  explicit Wire(std::string name) : name_(std::move(name)) {}

  /// Blocks: resolves the name, and connects within `patience` to each of its addresses. TLS comes with secure().
  std::optional<Error> connect(const Address& to, Clock::Duration patience);
  std::optional<Error> connect(const std::string& socket, Clock::Duration patience);
  /// Begins TLS, if the options ask for it.
  std::optional<Error> secure(const Options& options, const std::string& host);

  /// Each read and write ends by itself after this time, or never if it is zero.
  void set_patience(Clock::Duration patience);

  int descriptor() const;

  /// In one write.
  std::optional<Error> send(const std::vector<Command>& commands);
  Result<Reply> receive();
  Result<Reply> ask(const Command& command);

  /// Returns the next reply that has come as a whole. If it returns nothing, call fill() first.
  Result<std::optional<Reply>> next();
  std::optional<Error> fill();

  Error broken(const std::string& what) const;
  const std::string& name() const { return name_; }

 private:
  std::optional<Error> made(redisContext* context);

  const std::string name_;
  CHandle<redisContext, redisFree> context_;
  std::size_t received_{};  ///< The bytes of the reply that is coming.
};

}  // namespace tenure::redis
