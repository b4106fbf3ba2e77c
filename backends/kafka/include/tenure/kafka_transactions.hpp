// SPDX-License-Identifier: Apache-2.0
// The strict fence of Kafka: what a leader produces in these transactions is decided before its successor's claim, or
// never committed. adapters/fence/README.md says why.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/kafka_export.hpp>
#include <tenure/token.hpp>

struct rd_kafka_s;  ///< librdkafka's rd_kafka_t.

namespace tenure::kafka {

/// A transactional producer beside an election of open(), at the same cluster and with the same login. Call it on one
/// thread at a time; its calls wait for brokers.
///
/// From the beginning of commit() to the transaction's end nobody else leads. If the process hangs or dies meanwhile,
/// or commit() runs out of time, the next begin() ends it, or the brokers do: after `transaction.timeout.ms`, which is
/// 10 s here by default, and up to 10 s more.
///
/// Rights: WRITE on the transactional id and on what is written to; READ on the election's topic and group.
class TENURE_KAFKA_EXPORT Transactions {
 public:
  using Limit = std::chrono::milliseconds;  ///< For all that one call asks of the brokers.

  /// How a transaction ended.
  enum class Outcome {
    committed,
    refused,  ///< Nothing of it is committed: a later leader exists or may exist, time ran out, or a delivery failed.
    unknown,  ///< The brokers did not say in time. If it is committed, then before any later claim.
  };

  /// `id`: the transactional.id. REQUIRES: no other living process has it. `properties`: further ones of librdkafka.
  /// Connects to nothing yet. Warns in the election's log if these properties alone do without TLS. Throws
  /// std::invalid_argument if the backend is not of open() or open_url(), or was opened before fork(); if `id` is
  /// empty, or the election decides a property.
  Transactions(std::shared_ptr<Backend> election, const std::string& id,
               const std::map<std::string, std::string>& properties = {});
  ~Transactions();  ///< Commits nothing.
  Transactions(const Transactions&) = delete;
  Transactions& operator=(const Transactions&) = delete;

  /// Begins a transaction, and returns what to produce by until it ends. It may be another one each time. Only this
  /// class begins and ends its transactions. Throws std::logic_error if one is open, or in a forked child;
  /// std::runtime_error with librdkafka's reason.
  rd_kafka_s* begin(Limit within);

  /// Ends the transaction. Commits it if the tenure of `token` still leads in its group, and no rebalance is under way.
  /// REQUIRES: all of it was produced for that tenure. What rd_kafka_produce() refused is not in it: abort() then.
  Outcome commit(Token token, Limit within);

  /// Ends the transaction, if there is one. Nothing of it is committed.
  void abort(Limit within);

 private:
  class Producer;
  std::unique_ptr<Producer> producer_;
};

}  // namespace tenure::kafka
