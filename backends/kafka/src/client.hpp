// SPDX-License-Identifier: Apache-2.0
// One consumer handle of librdkafka. It knows the C API and groups, and nothing of elections.
#pragma once
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdint>
#include <map>
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
#include "handle.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// The limit of a read that blocks. A hung coordinator costs one read, and that may be longer than a short lease.
inline constexpr auto read_limit = std::chrono::milliseconds(1500);

/// Returns the error of an answer. If the answer has none, returns the first error of its partitions.
rd_kafka_resp_err_t error_of(rd_kafka_resp_err_t code, const rd_kafka_topic_partition_list_t* list);
/// The topic's partitions in a member's assignment, which a coordinator tells in the bytes of the consumer protocol.
std::vector<int> assigned_partitions(std::string_view assignment, std::string_view topic);

/// Any thread may call any method, but only one at a time takes events.
class Client {
 public:
  /// Throws std::runtime_error, redacted, if librdkafka refuses.
  Client(const Properties& properties, Target target, std::shared_ptr<ClosableLog> log);
  ~Client();  ///< Does not leave the group; begin_close() does that.
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// `waker` is woken by a thread of librdkafka when next_event() may have something. Null: nobody is woken any more.
  void on_events(std::shared_ptr<Waker> waker);

  struct Event {
    enum class Kind { assigned, revoked, committed, trouble, fatal } kind{};
    bool lost{};                  ///< revoked
    std::vector<int> partitions;  ///< assigned / revoked: those of the topic
    std::uint64_t id{};           ///< committed
    bool again{};  ///< committed: a connection was closed meanwhile, so another copy may be handled, now or later
    rd_kafka_resp_err_t code{};
    std::string text;
  };
  std::optional<Event> next_event();
  /// A call's result. What the client said of itself (a password, a certificate, a broker that is gone) replaces an
  /// error that says less. This takes the events in. The client's last word stands until a call succeeds.
  template <class T>
  Result<T> with_reason(Result<T> result) {
    auto error = take_trouble(result ? nullptr : &result.error());
    return error ? Result<T>(std::move(*error)) : std::move(result);
  }
  /// The same for the error of a call. Null: the call succeeded.
  std::optional<Error> take_trouble(const Error* error);
  /// It said last that a broker refuses its sign-in or its certificate, or that it refuses the broker's.
  bool turned_away() const { return trouble_ && kafka::turned_away(trouble_->code, trouble_->text); }

  std::optional<Error> subscribe();
  void assign_nothing();  ///< Answers an assignment, and consumes nothing.
  void unassign();
  /// The answer comes as an event. REQUIRES: the one before was answered, for a member's handle.
  rd_kafka_resp_err_t commit(std::uint64_t id, int partition, const Commit& commit);
  rd_kafka_resp_err_t commit(std::uint64_t id, const std::map<int, Commit>& commits);  ///< In one request.
  Result<std::vector<std::optional<Commit>>> committed(int partitions, std::chrono::milliseconds within);
  /// The coordinator has not answered the last commit by the connection that there is now, or there was none.
  bool unheard() const { return unheard_ || callbacks_.closed != closed_before_; }
  /// What it is in the group by its last assignment. REQUIRES: that is not answered yet: then it is of one generation.
  struct Standing {
    int generation{-1};
    std::string member;
  };
  Standing standing() const;
  /// Who owns the topic's partitions, whether ours or not.
  Result<Owners> owners(std::chrono::milliseconds within);
  /// All brokers answered, and none of them has such a group.
  bool no_such_group(std::chrono::milliseconds within);
  /// Wakes the client's main loop, which sends no more than a heartbeat in 500 ms by itself.
  void nudge() const;

  /// How many partitions the topic has. Sets `missing` if there is no such topic.
  /// Takes the events.
  Result<int> partitions(std::chrono::milliseconds within, bool& missing);

  void unsubscribe();  ///< Answers every rebalance, and takes the events.
  void begin_close();
  bool closed();  ///< Call it until it is true: it serves the events that closing needs.

  Error explained(rd_kafka_resp_err_t code, const std::string& context = {}) const {
    return explain(code, context, target_, log_->redacted());
  }

 private:
  std::shared_ptr<ClosableLog> log_;
  Target target_;
  std::shared_ptr<Waker> waker_;
  Callbacks callbacks_{*log_};
  unsigned closed_before_{};  ///< When the last commit was handed to librdkafka.
  bool unheard_{true};
  rd_kafka_t* rk_{};
  CHandle<rd_kafka_queue_t, rd_kafka_queue_destroy> queue_;
  std::optional<Event> trouble_;
};

Target target_of(const Options& options, int partitions = 2);

/// A client that joins no group, and reads what the group keeps. Throws std::invalid_argument, redacted, if librdkafka
/// refuses its properties.
std::shared_ptr<Client> make_observer(const Options& options, const std::string& group,
                                      const std::shared_ptr<ClosableLog>& log, int partitions = 2);

}  // namespace tenure::kafka
