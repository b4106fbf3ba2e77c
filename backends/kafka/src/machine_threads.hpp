// SPDX-License-Identifier: Apache-2.0
// The two threads round a machine. They carry facts to it, and do what it decides. The serving thread owns the machine
// and the member handle; the reading thread makes the reads that block.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <tenure/kafka.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/kit/store.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "handle_facts.hpp"
#include "mailbox.hpp"
#include "member_handle.hpp"
#include "reader.hpp"
#include "reading_thread.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// What every store here is opened with. Throws as open() does.
struct Prepared {
  Options options;  ///< Completed.
  std::shared_ptr<ClosableLog> log;
  std::unique_ptr<Reader> observer;
};
Prepared prepared(Options given, int partitions);

/// Of the topic of a single election: the record's, and the nonce's.
inline constexpr int record_and_nonce = 2;

/// Owned by its user and its two threads together, so that none waits for another at the end. `Its` is the class that
/// derives from this: it has machine(), assigned(), handled(), waits_to_leave(), pace_of_its() and a carry_out() for
/// its own effects.
template <class Its, class Fact, class Answer>
class MachineThreads : public std::enable_shared_from_this<Its> {
 public:
  void stop() {
    mailbox_.close();
    serve_thread_.join();
    log_->close();
    reading_.stop();
  }
  void post(Fact fact) { mailbox_.post(std::move(fact)); }
  const Options& options() const { return options_; }
  const std::shared_ptr<ClosableLog>& log() const { return log_; }

 protected:
  MachineThreads(Options options, std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer)
      : options_(std::move(options)),
        log_(std::move(log)),
        observer_(std::move(observer)),
        incarnation_(draw_incarnation()),
        member_(log_, mailbox_.waker()) {}

  /// Throws std::system_error if threads have run out.
  void start(const char* serving, const char* reading) {
    const auto self = this->shared_from_this();
    serve_thread_ = start_thread(serving, [self] { self->serve(); });
    try {
      reading_.start(reading, self);
    } catch (...) {
      stop();
      throw;
    }
  }

  // The serving thread

  void open(const effect::Open& asked, int partitions) {
    if (auto error = member_.open(asked.handle, options_, pace_, asked.client_id, partitions))
      post(fact::Broken{asked.handle, std::move(*error)});
  }
  template <class... Commits>
  void send(std::uint64_t id, const Commits&... commits) {
    const auto& client = member_.client();
    const auto code = client ? client->commit(id, commits...) : RD_KAFKA_RESP_ERR__STATE;
    if (code) post(fact::Committed{id, Outcome::failed, observer_->explained(code, "offset commit")});
  }
  void carry_out(effect::Assign&) {
    if (member_.client()) member_.client()->assign_nothing();
  }
  void carry_out(effect::Unassign&) {
    if (member_.client()) member_.client()->unassign();
  }
  void carry_out(effect::FindOwners&) {
    reading_.add([this] { post(fact::OwnersFound{tried([this] { return observer_->client().owners(read_limit); })}); });
  }
  void carry_out(effect::Drop& drop) {
    member_.drop(its().waits_to_leave(), [weak = this->weak_from_this(), handle = drop.handle] {
      if (const auto self = weak.lock()) self->post(fact::Left{handle});
    });
  }
  void carry_out(effect::Tell& report) { log_->write(report.level, report.message); }
  void handle(const Fact& fact) {
    auto& clock = boot_clock();
    for (auto& next : its().machine().on(fact, clock.now(), clock.unix_ms()))
      std::visit([this](auto& effect) { its().carry_out(effect); }, next);
    its().handled();
  }

  const Options options_;
  const std::shared_ptr<ClosableLog> log_;
  const std::unique_ptr<Reader> observer_;  ///< The reading thread's, but for explained().
  const std::string incarnation_;
  Mailbox<Fact, Answer> mailbox_;
  ReadingThread reading_;

  // The serving thread's, from begin() on
  Pace pace_{};
  MemberHandle member_;
  Client::Standing standing_;  ///< By the last assignment.

 private:
  Its& its() { return static_cast<Its&>(*this); }

  void serve() {
    mailbox_.serve({.handle = [this](const Fact& fact) { handle(fact); },
                    .take_events = [this] { take_events(); },
                    .alarm = [this] { return std::min(its().machine().alarm(), member_.next_nudge()); },
                    .give_handle_up =
                        [this](const std::string& why) {
                          handle(fact::Broken{any_handle, {Fault::unreachable, why}});
                        },
                    .elapsed = fact::Elapsed{},
                    .closing = fact::Closing{}},
                   *log_);
  }
  void take_events() {
    // A fact may drop the handle, or open another.
    while (const auto client = member_.client()) {
      const auto event = client->next_event();
      if (!event) return;
      take(*event, *client);
    }
  }
  void take(const Client::Event& event, const Client& client) {
    const auto number = member_.handle();
    using Kind = Client::Event::Kind;
    switch (event.kind) {
      case Kind::assigned: {
        standing_ = client.standing();
        return handle(Its::assigned(number, event, standing_));
      }
      case Kind::revoked: return handle(fact::Revoked{number, event.lost});
      case Kind::committed:
        return handle(fact::Committed{event.id, outcome_of(event.code),
                                      event.code ? client.explained(event.code, "offset commit") : Error{},
                                      event.again});
      case Kind::trouble:
        if (needs_the_user(event.code, event.text))
          handle(fact::Troubled{number, client.explained(event.code, event.text)});
        return;
      case Kind::fatal: return handle(fact::Broken{number, client.explained(event.code, event.text)});
    }
  }

  std::thread serve_thread_;
};

/// A store's side of its threads, which begin with its first call. One thread at a time calls it.
template <class Threads>
class ThreadsInUse {
 public:
  /// `usual`: the Timing until accepts() was asked.
  ThreadsInUse(std::shared_ptr<Threads> threads, const Timing& usual) : threads_(std::move(threads)), timing_(usual) {}
  ~ThreadsInUse() {
    if (forked())
      new std::shared_ptr<Threads>(std::move(threads_));  // never freed: its threads are the parent's
    else
      threads_->stop();
  }
  ThreadsInUse(const ThreadsInUse&) = delete;
  ThreadsInUse& operator=(const ThreadsInUse&) = delete;

  Threads* operator->() const { return threads_.get(); }
  bool forked() const { return ::getpid() != made_by_; }

  std::optional<Error> accepts(const Timing& timing) {
    auto kept = timing;  // Retry, call and drain are core's alone.
    kept.retry = timing_.retry;
    kept.call = timing_.call;
    kept.drain = timing_.drain;
    if (started_ && kept != timing_)
      return Error{Fault::misconfigured,
                   "kafka: term, renew, margin and clock_rate_error cannot be changed while the store is in use, "
                   "because it joined the group by them. Open another one"};
    auto pace = threads_->pace_of_its(timing);
    if (!pace) return std::move(pace).error();
    timing_ = timing;
    return std::nullopt;
  }

  /// The answer, or an empty one if there is none by the limit.
  template <class What>
  auto call(What what, const Limit& limit) -> decltype(std::declval<Threads&>().call(std::move(what), limit)) {
    if (forked()) return {};  // before any lock: it may have been held when we were forked
    if (!started_) {
      const auto pace = threads_->pace_of_its(timing_);
      if (!pace) throw std::invalid_argument(pace.error().message);
      threads_->begin(timing_, *pace);
      started_ = true;
    }
    return threads_->call(std::move(what), limit);
  }

  Error unanswered(const Limit& limit) const {
    if (forked()) return forked_child("the store of Kafka");
    return {Fault::timed_out, limit.stop.stop_requested() ? "the caller ended the call"
                                                          : "the call's limit passed before an answer came"};
  }

 private:
  std::shared_ptr<Threads> threads_;
  const pid_t made_by_{::getpid()};
  Timing timing_;
  bool started_{};
};

}  // namespace tenure::kafka
