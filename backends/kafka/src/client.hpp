// SPDX-License-Identifier: Apache-2.0
// One consumer handle of librdkafka. It knows the C API and groups, and nothing of elections.
#pragma once
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/result.hpp>

#include "closable_log.hpp"
#include "errors.hpp"
#include "group.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Of an answer: its own error, or else its first partition's.
rd_kafka_resp_err_t error_of(rd_kafka_resp_err_t code, const rd_kafka_topic_partition_list_t* list);
bool has_owner_partition(const rd_kafka_topic_partition_list_t* list, const std::string& topic);
/// The same of what a coordinator tells of a member, in the consumer protocol's bytes.
bool assigns_owner_partition(std::string_view assignment, std::string_view topic);

/// All methods are safe to call from any thread; events are taken by one.
class Client {
 public:
  /// Throws std::runtime_error, redacted, if librdkafka refuses.
  Client(const Properties& properties, Target target, std::shared_ptr<ClosableLog> log);
  ~Client();  ///< Does not leave the group: begin_close() does.
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Called on a thread of librdkafka when next_event() may have something. Must only wake.
  void on_events(std::shared_ptr<Waker> waker);

  struct Event {
    enum class Kind { assigned, revoked, committed, trouble, fatal } kind{};
    bool owner{}, lost{};  ///< assigned / revoked
    std::uint64_t id{};    ///< committed
    rd_kafka_resp_err_t code{};
    std::string text;
  };
  std::optional<Event> next_event();
  /// A call's result, or, if the client says of its own accord what is wrong (a password, a certificate, a broker that
  /// is gone), that instead of an error that knows less. Takes the events; what it was told last stands until a
  /// success.
  template <class T>
  Result<T> with_reason(Result<T> result) {
    auto error = take_trouble(result ? nullptr : &result.error());
    return error ? Result<T>(std::move(*error)) : std::move(result);
  }
  /// `error`: of a call; null: it succeeded.
  std::optional<Error> take_trouble(const Error* error);

  std::optional<Error> subscribe();
  void assign_nothing();  ///< Answers an assignment: nothing is to be consumed.
  void unassign();
  /// The answer comes as an event.
  rd_kafka_resp_err_t commit(std::uint64_t id, int partition, const Commit& commit);
  Result<std::vector<std::optional<Commit>>> committed(int partitions, std::chrono::milliseconds within);
  int generation() const;
  /// Of partition 0, whoever it is; nothing while nobody does.
  Result<std::optional<PartitionOwner>> owner(std::chrono::milliseconds within);
  /// Wakes the client's main loop, which else sends heartbeats every 500 ms at best.
  void nudge() const;

  /// nullopt: there are enough partitions. Takes the events, too.
  std::optional<Error> check_topic(std::chrono::milliseconds within, bool& missing);

  void unsubscribe();
  void begin_close();
  bool closed();  ///< Serves what the closing needs.

  Error explained(rd_kafka_resp_err_t code, const std::string& context = {}) const {
    return explain(code, context, target_, log_->redacted());
  }

 private:
  std::shared_ptr<ClosableLog> log_;
  Target target_;
  std::shared_ptr<Waker> waker_;
  rd_kafka_t* rk_{};
  CHandle<rd_kafka_queue_t, rd_kafka_queue_destroy> queue_;
  std::optional<Event> trouble_;
};

/// A client that joins no group, and reads what it keeps. Throws std::invalid_argument, redacted, if librdkafka
/// refuses.
std::shared_ptr<Client> make_observer(const Options& options, const std::string& group,
                                      const std::shared_ptr<ClosableLog>& log);

}  // namespace tenure::kafka
