// SPDX-License-Identifier: Apache-2.0
// One connection to the server that holds the record: found, made ready, and left when another server holds it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/exchange.hpp>
#include <tenure/kit/try_order.hpp>

#include "script.hpp"
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

}  // namespace tenure::redis
