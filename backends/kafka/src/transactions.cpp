// SPDX-License-Identifier: Apache-2.0
// Transactions that end before the next claim: rule 25 of the README of this room.
#include <tenure/kafka_transactions.hpp>

#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/start_thread.hpp>

#include "handle.hpp"
#include "neli_threads.hpp"

namespace tenure::kafka {
namespace {

using Failure = CHandle<rd_kafka_error_t, rd_kafka_error_destroy>;

std::shared_ptr<KafkaBackend> kafka_backend(std::shared_ptr<Backend> election) {
  auto it = std::dynamic_pointer_cast<KafkaBackend>(std::move(election));
  if (!it) throw std::invalid_argument("Transactions: this backend is not of tenure::kafka::open()");
  if (it->forked()) throw std::invalid_argument("Transactions: this backend was opened before fork(); open one here");
  return it;
}

Properties producer_properties(const Options& options, const std::string& id, const Properties& more) {
  auto out = common_properties(options, options.group);
  for (const auto* consumer_only : consumer_properties) out.erase(consumer_only);
  out["transaction.timeout.ms"] = "10000";
  for (const auto& [name, value] : more) out[name] = value;
  out["client.id"] = "tenure.transactions";
  out["transactional.id"] = id;
  return out;
}

}  // namespace

class Transactions::Producer {
 public:
  Producer(std::shared_ptr<KafkaBackend> election, const std::string& id, const Properties& more)
      : election_(std::move(election)), log_(election_->log()) {
    if (id.empty()) throw std::invalid_argument("Transactions: the transactional id is empty");
    log_->hide(secrets_of(more));
    check_not_owned(more);  // such as socket.max.fails, without which rule 25 sees no request that was sent again
    properties_ = producer_properties(election_->options(), id, more);
    auto options = election_->options();
    if (!tls_remedy(options).empty()) return;  // The election has said so.
    for (const auto& [name, value] : more) options.properties[name] = value;
    warn_without_tls(options, *log_);
  }
  ~Producer() {
    if (forked() && handle_) static_cast<void>(handle_->rk.release());  // its threads are the parent's
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  rd_kafka_t* begin(Limit within) {
    if (forked())
      throw std::logic_error("Transactions: made before fork(); open the election and make it in the child");
    if (open_) throw std::logic_error("Transactions: the one before was not ended");
    // librdkafka sends a request again if its connection was closed before the answer. The first copy may arrive in a
    // later transaction, and end that one early. After init_transactions() the coordinator refuses all older ones.
    if (handle_ && handle_->callbacks.closed != handle_->closed_before) handle_.reset();
    if (!handle_) open(within);
    if (const Failure failed{rd_kafka_begin_transaction(handle_->rk.get())}) fail(*failed);
    open_ = true;
    return handle_->rk.get();
  }

  Outcome commit(Token token, Limit within) {
    const auto by = boot_clock().now() + within;
    if (forked() || !open_) return Outcome::refused;
    // An abort that gets no time leaves it to the brokers to end the transaction, and the successor waits for that.
    if (!hold(token, by - within / 4)) return abort_by(by), Outcome::refused;
    const auto failed = tried(by, [&] { return rd_kafka_commit_transaction(handle_->rk.get(), left(by)); });
    if (!failed) return open_ = false, Outcome::committed;
    if (rd_kafka_error_txn_requires_abort(failed.get()) != 0 && abort_by(by)) return Outcome::refused;
    close();
    return Outcome::unknown;
  }

  void abort(Limit within) {
    if (!forked() && open_) abort_by(boot_clock().now() + within);
  }

 private:
  struct Handle {
    explicit Handle(std::shared_ptr<ClosableLog> its) : log(std::move(its)) {}
    const std::shared_ptr<ClosableLog> log;
    Callbacks callbacks{*log};
    unsigned closed_before{};
    const std::unique_ptr<Waker> wakes{boot_clock().make_waker()};
    CHandle<rd_kafka_t, end_handle> rk;
  };

  bool forked() const { return ::getpid() != made_by_; }

  static int left(Clock::Time by) {
    const auto remains = std::chrono::ceil<Limit>(by - boot_clock().now()).count();
    return static_cast<int>(std::clamp<Limit::rep>(remains, 1, 3'600'000));
  }
  /// Again while librdkafka says that it may be called again, and time remains.
  template <class Call>
  static Failure tried(Clock::Time by, Call call) {
    for (;;) {
      Failure failed(call());
      if (!failed || rd_kafka_error_is_retriable(failed.get()) == 0 || boot_clock().now() >= by) return failed;
      sleep_for(std::chrono::milliseconds(10));
    }
  }
  [[noreturn]] void fail(const rd_kafka_error_t& failed) {
    const auto why = printable(log_->redacted()(rd_kafka_error_string(&failed)));
    close();
    throw std::runtime_error("Transactions: " + why);
  }

  void open(Limit within) {
    const auto handle = std::make_shared<Handle>(log_);
    handle->rk.reset(make_handle(RD_KAFKA_PRODUCER, properties_, handle->callbacks));  // It may throw.
    handle_ = handle;
    const auto by = boot_clock().now() + within;
    if (const auto failed = tried(by, [&] { return rd_kafka_init_transactions(handle_->rk.get(), left(by)); }))
      fail(*failed);
    handle_->closed_before = handle_->callbacks.closed;
  }

  /// The coordinator takes this in the generation of the tenure alone. Who claims in a later one reads this partition
  /// before, and that read waits for the end of the transaction.
  ///
  /// librdkafka keeps no limit here (its issue 5456). So a call that outlasts ours is left behind with its handle. Of
  /// that transaction nothing can be committed any more: no end of it was sent, and the next handle's begin forbids it.
  bool hold(Token token, Clock::Time by) try {
    const auto place = election_->place(token);
    if (!place) return false;
    struct Call {
      std::atomic<bool> over{}, taken{};
    };
    const auto call = std::make_shared<Call>();
    auto thread = start_thread("tenure-k-fence", [call, handle = handle_, at = *place, by,
                                                  group = election_->options().group,
                                                  topic = election_->options().topic] {
      const auto offsets = owned<rd_kafka_topic_partition_list_destroy>(rd_kafka_topic_partition_list_new(1));
      rd_kafka_topic_partition_list_add(offsets.get(), topic.c_str(), nonce_partition)->offset = 1;
      const auto member = owned<rd_kafka_consumer_group_metadata_destroy>(
          rd_kafka_consumer_group_metadata_new_with_genid(group.c_str(), at.generation, at.member.c_str(), nullptr));
      call->taken = !tried(by, [&] {
        return rd_kafka_send_offsets_to_transaction(handle->rk.get(), offsets.get(), member.get(), left(by));
      });
      call->over = true;
      handle->wakes->wake();
    });
    while (!call->over && boot_clock().now() < by) handle_->wakes->wait_until(by);
    if (call->over) {
      thread.join();
      return call->taken;
    }
    close();
    leave_behind(std::move(thread));
    return false;
  } catch (const std::system_error&) {  // Threads have run out.
    return false;
  }

  /// Whether the coordinator has said so.
  bool abort_by(Clock::Time by) {
    if (!handle_) return false;
    const auto failed = tried(by, [&] { return rd_kafka_abort_transaction(handle_->rk.get(), left(by)); });
    open_ = false;
    if (failed) close();
    return !failed;
  }
  /// What is open is ended by the brokers, at the latest when the next handle with this id begins.
  void close() {
    handle_.reset();
    open_ = false;
  }

  const std::shared_ptr<KafkaBackend> election_;
  const std::shared_ptr<ClosableLog> log_;
  const pid_t made_by_{::getpid()};
  Properties properties_;
  std::shared_ptr<Handle> handle_;  ///< Shared with a call that was left behind.
  bool open_{};
};

Transactions::Transactions(std::shared_ptr<Backend> election, const std::string& id,
                           const std::map<std::string, std::string>& properties)
    : producer_(std::make_unique<Producer>(kafka_backend(std::move(election)), id, properties)) {}
Transactions::~Transactions() = default;
rd_kafka_s* Transactions::begin(Limit within) { return producer_->begin(within); }
Transactions::Outcome Transactions::commit(Token token, Limit within) { return producer_->commit(token, within); }
void Transactions::abort(Limit within) { producer_->abort(within); }

}  // namespace tenure::kafka
