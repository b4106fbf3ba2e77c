// SPDX-License-Identifier: Apache-2.0
// One election's record on a server: carries questions to the connections and answers back.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/log.hpp>

#include "connection.hpp"
#include "record.hpp"
#include "sentinels.hpp"

namespace tenure::redis {

class Store final : public ConditionalStore {
 public:
  /// `candidate` is for CLIENT LIST. It may be empty.
  Store(const Options& options, const std::string& election, const std::string& candidate, Log log);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;

 private:
  /// A connection on a thread of its own. It leads to one master for ever.
  struct ThreadedConnection {
    ThreadedConnection(const Options& options, Connection::Use use, const std::optional<Address>& to,
                       const std::string& client)
        : master(to), connection(std::make_shared<Connection>(options, use, to, client)), thread(connection) {}
    const std::optional<Address> master;  ///< As Sentinels named it.
    const std::shared_ptr<Connection> connection;
    CallThread thread;
  };
  /// Which server to ask, and whether it is still the right one.
  struct Target {
    std::optional<Address> master{};  ///< The master that Sentinels name, or nothing for one of the options' servers.
    std::stop_token moved{};          ///< Requested once Sentinels name another.
  };

  Result<Target> find_target(Clock::Time since, const Limit& limit);
  Result<ThreadedConnection*> connection_to(const Target& target, std::optional<ThreadedConnection>& kept,
                                            Connection::Use use) const;
  Result<Reply> run(const Script& script, const std::vector<std::string>& arguments, const Limit& limit,
                    Clock::Time named_since = Clock::Time::min(), int replicas = 0);
  Result<std::optional<Version>> listen(const std::optional<Version>& seen, const Limit& limit);
  void warn(const std::string& message) const;

  const Options options_;
  const std::string election_, key_, client_;
  const Log log_;
  std::optional<Sentinels> sentinels_;
  Clock::Time doubted_{Clock::Time::min()};  ///< What Sentinels said before this counts no more.
  std::optional<Clock::Time> attempt_;       ///< When the Sentinels were asked for a read that a claim may follow.
  std::optional<ThreadedConnection> commands_;
  std::optional<ThreadedConnection> notices_;  ///< Once it waited.
  std::string last_warning_;                   ///< Why it cannot subscribe.
};

}  // namespace tenure::redis
