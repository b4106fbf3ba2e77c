// SPDX-License-Identifier: Apache-2.0
// One election's keys in a cluster.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/log.hpp>

#include "cell.hpp"
#include "connection.hpp"
#include "options.hpp"

namespace tenure::etcd {

class Store final : public ConditionalStore {
 public:
  Store(const Options& options, const std::string& election, Log log);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;

 private:
  /// A connection of its own, which the first follower makes.
  struct Watch {
    explicit Watch(const Options& options) : connection(std::make_shared<Connection>(options)), thread(connection) {}
    const std::shared_ptr<Connection> connection;
    CallThread thread;
  };
  Result<Connection::News> listen(const Limit& limit);
  void rest(Clock::Time until, const Limit& limit);
  void warn_once(const Error& error);

  const Options options_;
  const std::string election_;
  const Keys keys_;
  const Log log_;
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<Cell> cell_;
  CallThread commands_;
  std::optional<Watch> watch_;
  Connection::News known_;             ///< What the watch reported last.
  std::optional<std::string> pushed_;  ///< A released record, until it is claimed.
  std::string last_warning_;           ///< Why it cannot watch.
};

}  // namespace tenure::etcd
