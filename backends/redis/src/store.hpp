// SPDX-License-Identifier: Apache-2.0
// One election's record on a server: carries questions to the connections and answers back.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenure/call_thread.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/log.hpp>

#include "connection.hpp"
#include "record.hpp"

namespace tenure::redis {

class Store final : public ConditionalStore {
 public:
  Store(const Options& options, const std::string& election, Log log);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> recall(const Recall& request, const Limit& limit) override;

 private:
  /// A connection on a thread of its own.
  struct Line {
    Line(const Options& options, Connection::Use use)
        : connection(std::make_shared<Connection>(options, use)), thread(connection) {}
    const std::shared_ptr<Connection> connection;
    CallThread thread;
  };

  Result<Reply> run(const Script& script, std::vector<std::string> arguments, const Limit& limit, int replicas = 0);
  Result<std::optional<Version>> listen(const std::optional<Version>& seen, const Limit& limit);
  void warn(const std::string& message) const;

  const Options options_;
  const std::string election_, key_;
  const Log log_;
  Line commands_;
  std::optional<Line> notices_;  ///< Once it stood by.
  std::string deaf_;             ///< Why, as last warned of.
};

}  // namespace tenure::redis
