// SPDX-License-Identifier: Apache-2.0
// The threads round Neli, and the backend in front of them.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <tenure/backend.hpp>
#include <tenure/kafka.hpp>
#include <tenure/kit/store.hpp>

#include "create_topic.hpp"
#include "machine_threads.hpp"
#include "neli.hpp"
#include "reaper.hpp"

namespace tenure::kafka {

/// What a verb brought; nothing if its limit passed first.
using CallResult = std::variant<std::monostate, Answer, Sight, std::optional<Error>>;

/// The highest token that this process has read of the election, or reads now. It outlives a backend.
inline Token highest_token(const Options& o, Token read = {}) {
  const std::lock_guard lock(fork_safe_mutex());
  static auto& tokens = *new std::map<std::string, Token>;  // never destroyed, as what guards it
  auto& kept = tokens[o.brokers + "\n" + o.group + "\n" + o.topic];
  return kept = std::max(kept, read);
}

class NeliThreads final : public MachineThreads<NeliThreads, Fact, CallResult> {
 public:
  /// Makes it with its threads, and with all that its end needs. Throws std::system_error if threads or descriptors
  /// have run out.
  static std::shared_ptr<NeliThreads> make(Options options, std::shared_ptr<ClosableLog> log,
                                           std::unique_ptr<Reader> observer) {
    std::shared_ptr<NeliThreads> it(new NeliThreads(std::move(options), std::move(log), std::move(observer)));
    it->start("tenure-kafka", "tenure-k-read");
    return it;
  }

  Result<Pace> pace_of_its(const Timing& timing) const { return pace_of(timing, options_); }

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace) {
    pace_ = pace;
    neli_.emplace(Neli::Config{.lease = std::chrono::ceil<std::chrono::milliseconds>(timing.term),
                               .margin = timing.margin,
                               .observe_every = pace.observe_every,
                               .name = options_.candidate.name,
                               .address = options_.candidate.address,
                               .incarnation = incarnation_,
                               .first_claim_waits = options_.first_claim == FirstClaim::wait,
                               .remote_step_down = options_.remote_step_down,
                               .highest = highest_token(options_)});
    mailbox_.open();
  }

  /// One verb at a time.
  CallResult call(fact::Called what, const Limit& limit) {
    const auto called = [&what](std::uint64_t id, Clock::Time by) {
      what.id = id, what.by = by;
      return what;
    };
    const auto abandoned = [](std::uint64_t id) { return fact::Abandoned{id}; };
    return mailbox_.call(limit, called, abandoned).value_or(std::monostate());
  }

  /// Nothing: this tenure is over, or a rebalance is under way. Any thread.
  std::optional<Client::Standing> place(Token token) {
    const std::lock_guard lock(place_mutex_);
    if (!place_ || place_->first != token) return std::nullopt;
    lent_ = place_->second.generation;
    return place_->second;
  }

 private:
  friend MachineThreads;
  using MachineThreads::carry_out;
  using MachineThreads::MachineThreads;

  // The serving thread
  Neli& machine() { return *neli_; }
  static Fact assigned(std::uint64_t handle, const Client::Event& event, const Client::Standing& its) {
    const auto& owned = event.partitions;
    return fact::Assigned{handle, std::find(owned.begin(), owned.end(), 0) != owned.end(), its.generation, its.member};
  }
  void handled() {
    publish_place();
    if (neli_->highest() == published_highest_) return;
    published_highest_ = neli_->highest();
    highest_token(options_, published_highest_);
  }

  void publish_place() {
    const auto token = neli_->leads_in_generation();
    std::optional<int> over;
    {
      const std::lock_guard lock(place_mutex_);
      if (place_ && token == place_->first) return;
      over = std::exchange(lent_, std::nullopt);
      place_.reset();
      if (token && standing_.generation >= 0 && !standing_.member.empty()) place_.emplace(*token, standing_);
    }
    if (over) handle(fact::Lent{*over});
  }

  static bool waits_to_leave() { return true; }
  void carry_out(effect::Open& asked) { open(asked, record_and_nonce); }

  void carry_out(effect::SendCommit& asked) { send(asked.id, asked.partition, asked.commit); }
  void carry_out(effect::ReadMember& read) {
    reading_.add(
        [this, id = read.id, client = member_.client()] {
          mailbox_.post(fact::MemberRead{id, tried([&] { return read_as_member(*client); })});
        },
        true);
  }

  void carry_out(effect::Observe& asked) {
    reading_.add([this, asked] {
      auto found = tried([&] { return observe(asked); });
      observer_->judge(bool(found));
      const bool first = asked.check_topic && asked.create;
      const bool new_group = first && found && !*found && observer_->client().no_such_group(read_limit);
      mailbox_.post(fact::Observed{asked.id, std::move(found), new_group});
    });
  }

  void carry_out(effect::ReadRequests&) {
    reading_.add([this] { mailbox_.post(fact::Requested{tried([this] { return read_requests(); })}); });
  }

  void carry_out(effect::Reply& reply) { mailbox_.answer(reply.id, std::move(reply.answer)); }
  void carry_out(effect::ReplySight& reply) { mailbox_.answer(reply.id, std::move(reply.sight)); }
  void carry_out(effect::ReplyReleased& reply) { mailbox_.answer(reply.id, std::move(reply.error)); }
  void carry_out(effect::Wake& wake) { mailbox_.answer(wake.id, Sight{}); }

  // The reading thread
  /// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
  static Result<Reading> read_as_member(Client& member) {
    auto found = member.committed(record_and_nonce, read_limit);
    if (!found && found.error().fault == Fault::timed_out)
      return Error{
          Fault::timed_out,
          "reading the record: the coordinator took a commit, and answers no read. Perhaps a former leader has a "
          "transaction open (kafka::Transactions): it ends by its transaction.timeout.ms, or up to 10 s later. If it "
          "does not, Kafka's kafka-transactions.sh tells its state (describe --transactional-id ID), and "
          "docker/operating.md of tenure says how to end it"};
    if (!found) return std::move(found).error();
    auto& commits = *found;
    return Reading{std::move(commits[0]), commits[1] ? std::move(commits[1]->metadata) : std::string()};
  }

  Result<std::optional<Commit>> read_requests() {
    if (!requests_) requests_ = std::make_unique<Reader>(options_, requests_group(options_.group), log_);
    auto& client = requests_->client();
    auto found = client.with_reason(client.committed(1, read_limit));
    requests_->judge(bool(found));
    if (!found) return std::move(found).error();
    return std::move((*found)[0]);
  }

  Result<std::optional<Commit>> observe(const effect::Observe& asked) {
    auto& client = observer_->client();
    if (asked.check_topic) {
      auto partitions = topic_partitions(options_, asked.create, client, reading_.waker(), *log_);
      if (!partitions) return std::move(partitions).error();
      if (*partitions == 0) return std::optional<Commit>();  // Nobody has ever led.
      if (auto error = too_few(*partitions, options_)) return std::move(*error);
    }
    auto found = client.with_reason(client.committed(1, read_limit));
    if (!found) return std::move(found).error();
    return std::move((*found)[0]);
  }

  std::unique_ptr<Reader> requests_;  ///< the reading thread's
  std::optional<Neli> neli_;          ///< the serving thread's, from begin() on
  Token published_highest_;

  std::mutex place_mutex_;
  std::optional<std::pair<Token, Client::Standing>> place_;
  std::optional<int> lent_;  ///< Its generation, once it was asked for.
};

/// The verbs of a candidate. Each but request_step_down() is one call to the serving thread.
class KafkaBackend final : public Backend {
 public:
  explicit KafkaBackend(std::shared_ptr<NeliThreads> threads) : threads_(std::move(threads), presets().balanced) {}

  std::optional<Error> accepts(const Timing& timing) override { return threads_.accepts(timing); }
  std::string election() const override { return threads_->options().group; }
  Answer acquire(const Limit& limit) override { return ask({.verb = Verb::acquire, .token = {}, .seen = {}}, limit); }

  Answer renew(Token token, const Limit& limit) override {
    return ask({.verb = Verb::renew, .token = token, .seen = {}}, limit);
  }

  std::optional<Error> release(const Limit& limit) override {
    auto result = threads_.call(fact::Called{.verb = Verb::release, .token = {}, .seen = {}}, limit);
    if (auto* error = std::get_if<std::optional<Error>>(&result)) return std::move(*error);
    return threads_.unanswered(limit);
  }

  Sight observe(const Limit& limit) override {
    auto result = threads_.call(fact::Called{.verb = Verb::observe, .token = {}, .seen = {}}, limit);
    if (auto* sight = std::get_if<Sight>(&result)) return std::move(*sight);
    return Unknown{threads_.unanswered(limit)};
  }

  void await_change(const Sight& seen, const Limit& limit) override {
    threads_.call(fact::Called{.verb = Verb::await_change, .token = {}, .seen = seen}, limit);
  }

  std::optional<Error> request_step_down(const std::string& by, const std::string& why, const Limit& limit) override;

  // For Transactions
  bool forked() const { return threads_.forked(); }
  std::optional<Client::Standing> place(Token token) { return threads_->place(token); }
  const Options& options() const { return threads_->options(); }
  std::shared_ptr<ClosableLog> log() const { return threads_->log(); }

 private:
  Answer ask(fact::Called what, const Limit& limit) {
    auto result = threads_.call(std::move(what), limit);
    if (auto* answer = std::get_if<Answer>(&result)) return std::move(*answer);
    return Unknown{threads_.unanswered(limit)};
  }

  ThreadsInUse<NeliThreads> threads_;
};

}  // namespace tenure::kafka
