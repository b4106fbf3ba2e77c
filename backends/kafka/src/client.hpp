// SPDX-License-Identifier: Apache-2.0
// One librdkafka consumer handle. Knows its C API and nothing of elections.
#pragma once
#include <librdkafka/rdkafka.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/log.hpp>
#include <tenure/result.hpp>

#include "neli.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Where a handle's log lines go. Outlives every handle, but not the user's interest in them.
class Journal {
 public:
  Journal(Log log, Redactor redacted, const std::string& election);
  void write(Level level, std::string_view message) noexcept;
  /// Returns when the user's function is not running and will not be called again. REQUIRES: not called by it.
  void close() noexcept;
  const Redactor& redacted() const { return redacted_; }

 private:
  Log log_;
  Redactor redacted_;
  std::string election_;
  std::atomic<bool> closed_{false};
  std::atomic<unsigned> writing_{0};
};

/// Names that error messages need to say what would be right.
struct Place {
  std::string brokers, group, topic;
};

/// What an error of the client means to a user, with the remedy. `context` is the client's own text.
Error explain(rd_kafka_resp_err_t code, const std::string& context, const Place& place, const Redactor& redacted);

/// Worth a user's attention though the client goes on trying.
bool needs_the_user(rd_kafka_resp_err_t code);

/// librdkafka takes a broker that hangs for one that is too old to answer.
std::string without_guess(std::string text);
/// What was tried, and the commonest reason if nobody answered.
std::string reading_failed(rd_kafka_resp_err_t code);

/// What the coordinator's answer to a commit means.
Outcome outcome_of(rd_kafka_resp_err_t code);
/// Of an answer: its own error, or else its first partition's.
rd_kafka_resp_err_t error_of(rd_kafka_resp_err_t code, const rd_kafka_topic_partition_list_t* list);
bool has_owner_partition(const rd_kafka_topic_partition_list_t* list, const std::string& topic);
/// The same of what a coordinator tells of a member, in the consumer protocol's bytes.
bool assigns_owner_partition(std::string_view assignment, std::string_view topic);

/// All methods are safe to call from any thread; events are taken by one.
class Client {
 public:
  /// Throws std::runtime_error, redacted, if librdkafka refuses.
  Client(const Properties& properties, Place place, std::shared_ptr<Journal> journal);
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
  Result<std::optional<Owner>> owner(std::chrono::milliseconds within);
  /// Wakes the client's main loop, which else sends heartbeats every 500 ms at best.
  void nudge() const;

  /// nullopt: there are enough partitions. Takes the events, too.
  std::optional<Error> check_topic(std::chrono::milliseconds within, bool& missing);

  void unsubscribe();
  void begin_close();
  bool closed();  ///< Serves what the closing needs.

  Error explained(rd_kafka_resp_err_t code, const std::string& context = {}) const {
    return explain(code, context, place_, journal_->redacted());
  }

 private:
  struct FreeQueue {
    void operator()(rd_kafka_queue_t* queue) const { rd_kafka_queue_destroy(queue); }
  };
  std::shared_ptr<Journal> journal_;
  Place place_;
  std::shared_ptr<Waker> waker_;
  rd_kafka_t* rk_{};
  std::unique_ptr<rd_kafka_queue_t, FreeQueue> queue_;
  bool closing_{};
  std::optional<Event> trouble_;
};

/// Creates a topic with a handle of its own: the admin calls must not meet a candidate's.
std::optional<Error> create_topic(const Properties& properties, const Place& place, const CreateTopic& how,
                                  std::shared_ptr<Journal> journal);

}  // namespace tenure::kafka
