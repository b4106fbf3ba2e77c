// SPDX-License-Identifier: Apache-2.0
// A connection to the server that holds the data: found, made ready, and left when another server holds them; and the
// way to whichever server that is, which carries scripts there and answers back, or messages from there.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/exchange.hpp>
#include <tenure/kit/repeats.hpp>
#include <tenure/kit/try_order.hpp>
#include <tenure/log.hpp>

#include "reply.hpp"
#include "sentinels.hpp"
#include "wire.hpp"

namespace tenure::redis {

/// A script to run.
struct Call {
  const Script* script{};
  std::vector<std::string> keys{};  ///< All keys are in one hash slot.
  std::vector<std::string> arguments{};
};

/// REQUIRES: used by one CallThread's exchanges.
class Connection final : public CallThread::Connection {
 public:
  enum class Use { commands, notices };
  struct Purpose {
    Options options;
    Use use{};
    std::string client{};  ///< What CLIENT SETNAME calls us.
    ReplyLimit most{record_limit};
  };
  /// `master`: as Sentinels name it; nothing: one of the options' servers.
  Connection(const Purpose& purpose, std::optional<Address> master)
      : options_(purpose.options),
        use_(purpose.use),
        client_(purpose.client),
        most_(purpose.most),
        master_(std::move(master)) {}

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override;
  bool settle(Exchange& exchange) override;

  /// What the script returned. An error that the server answers is an error here, and so is a redirection unless we
  /// `follow` it. Nothing: another server has the record, and the next call goes there.
  Result<std::optional<Reply>> run(const Call& call, bool follow, const Exchange& exchange);

  /// Whether as many replicas as the options demand have what was written on this connection.
  std::optional<Error> await_replicas(Clock::Time until, const Exchange& exchange);

  /// Listens to the channel from now on.
  std::optional<Error> subscribe(const std::string& channel, const Exchange& exchange);
  bool subscribed() const { return subscribed_; }

  /// No other connection of this process had it. Any thread.
  std::uint64_t number() const { return number_; }

  /// Returns the next message, or nothing if the exchange is over. An error ends the subscription.
  Result<std::optional<std::string>> next_message(const Exchange& exchange);

  /// Returns once what people should hear of. REQUIRES: nothing runs on the thread.
  std::optional<std::string> take_warning() { return std::exchange(warning_, std::nullopt); }

 private:
  std::vector<Address> servers() const;
  bool connect_to_server(CallThread::Attempt& attempt);
  std::optional<Error> open_and_introduce(CallThread::Attempt& attempt);
  bool went_well(std::optional<Error> error);
  bool by_socket() const;
  std::optional<Error> begin(CallThread::Attempt& attempt, const char* step);
  std::optional<Error> secure(CallThread::Attempt& attempt);
  std::optional<Error> shake_hands(CallThread::Attempt& attempt);
  std::optional<Error> check_role(const Reply& reply) const;
  std::optional<Error> check_cluster(const Reply& reply) const;
  std::optional<Error> check_memory(const Reply& reply);
  bool stale() const;
  void drop();
  void leave();
  Error lost(Error error);

  Result<Reply> send(const Call& call, const Exchange& exchange);
  Error explained(const Reply& reply, std::string_view command) const;

  const Options options_;
  const Use use_;
  const std::string client_;
  const ReplyLimit most_;
  const std::optional<Address> master_;
  Credentials login_;  ///< The login of this attempt, or of the connection that stands.
  std::optional<Wire> wire_;
  std::atomic<std::uint64_t> number_{};
  bool ready_{}, subscribed_{};
  bool ended_{};                ///< The attempt tries no further server.
  Address at_, address_;        ///< Where `wire_` leads: as it is named, and the address of that name.
  bool connected_{};            ///< Whether `wire_` was connected to that address, whatever came then.
  std::optional<Error> worst_;  ///< The worst error of this attempt.
  int weight_of_worst_{};
  std::optional<Address> to_;  ///< Where a cluster sent us.
  bool asking_{};              ///< We are at that server for a slot that is still on its way.
  TryOrder<Address> server_order_, address_order_;
  std::optional<std::string> warning_;
  std::string policy_;  ///< That was warned of.
};

using Warn = std::function<void(const std::string&)>;

/// Warnings about the election or the group of that name. `kind`: which of the two.
Warn warnings(Log log, std::string kind, std::string name);

/// Of each server to which a connection leads over a network without TLS.
void warn_of_plain_text(const Options& options, const Warn& warn);

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
  Repeats repeats_;  ///< Of why it cannot subscribe.
};

}  // namespace tenure::redis
