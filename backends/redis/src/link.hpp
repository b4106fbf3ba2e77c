// SPDX-License-Identifier: Apache-2.0
// The way to whichever server has the data: carries scripts there and answers back, or messages from there.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <tenure/kit/call_thread.hpp>
#include <tenure/log.hpp>

#include "connection.hpp"
#include "sentinels.hpp"

namespace tenure::redis {

using Warn = std::function<void(const std::string&)>;

/// Warnings about the election or the group of that name. `kind`: which of the two.
Warn warnings(Log log, std::string kind, std::string name);

/// A connection that is made on a thread of its own. It moves to another one when Sentinels name another master.
///
/// REQUIRES: one caller at a time, also of all links with the same Sentinels.
class Link {
 public:
  /// Makes the connection now or with the first call; with `sentinels` always then.
  enum class Made { now, when_needed };
  Link(Connection::Purpose purpose, std::shared_ptr<Sentinels> sentinels, Warn warn, Made made);

  struct Asked {
    Clock::Time named_since{Clock::Time::min()};  ///< The Sentinels must have named the master at that time or later.
    int replicas{};  ///< How many must have what the script wrote. A reply that begins with 1 says that it wrote.
  };
  Result<Reply> run(const Call& call, const Asked& asked, const Limit& limit);
  /// The number of the connection by which the last answer came.
  std::uint64_t connection() const { return kept_ ? kept_->connection->number() : 0; }

  /// Why it is not known who has been the master since then, if it is not. Without Sentinels it always is.
  std::optional<Error> find_master(Clock::Time since, const Limit& limit);

  /// Sleeps until a message of the channel `matters`, or until the limit. The first call subscribes and returns at
  /// once: what came before was not heard, and the caller reads again. So it does after a subscription broke.
  ///
  /// `matters` is also asked of an empty text, when it subscribed.
  /// `rests`: a link that can wait, also when this one has no connection and no descriptor is left.
  std::optional<std::string> await_message(const std::string& channel,
                                           const std::function<bool(const std::string&)>& matters, Link& rests,
                                           const Limit& limit);

 private:
  struct ThreadedConnection {
    ThreadedConnection(const Connection::Purpose& purpose, const std::optional<Address>& to)
        : master(to), connection(std::make_shared<Connection>(purpose, to)), thread(connection) {}
    const std::optional<Address> master;  ///< As Sentinels named it.
    const std::shared_ptr<Connection> connection;
    CallThread thread;
  };
  /// Which server to ask, and whether it is still the right one.
  struct Target {
    std::optional<Address> master{};  ///< As Sentinels name it; nothing: one of the options' servers.
    std::stop_token moved{};          ///< Requested once Sentinels name another.
  };

  Result<Target> find_target(Clock::Time since, const Limit& limit);
  Result<ThreadedConnection*> connection_to(const Target& target);
  Result<std::optional<std::string>> listen(const std::string& channel,
                                            const std::function<bool(const std::string&)>& matters, const Limit& limit);
  void rest(const Limit& limit);

  const Connection::Purpose purpose_;
  const std::shared_ptr<Sentinels> sentinels_;
  const Warn warn_;
  std::optional<ThreadedConnection> kept_;
  std::string last_warning_;  ///< Why it cannot subscribe.
};

}  // namespace tenure::redis
