// SPDX-License-Identifier: Apache-2.0
// Carries events of the handles to Neli, and its effects to them.
#include "neli_threads.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "create_topic.hpp"
#include "fork_safe.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;

/// The highest token that this process has read of each election. It outlives a backend.
class HighestTokens {
 public:
  static Token of(const std::string& election) {
    const std::lock_guard lock(fork_safe_mutex());
    return tokens()[election];
  }
  static void keep(const std::string& election, Token token) {
    const std::lock_guard lock(fork_safe_mutex());
    auto& kept = tokens()[election];
    kept = std::max(kept, token);
  }

 private:
  // Never destroyed: threads may still run while statics are torn down.
  static std::map<std::string, Token>& tokens() {
    static auto& it = *new std::map<std::string, Token>;
    return it;
  }
};

std::string election_key(const Options& o) { return o.brokers + "\n" + o.group + "\n" + o.topic; }

}  // namespace

std::shared_ptr<NeliThreads> NeliThreads::make(Options options, std::shared_ptr<ClosableLog> log,
                                               std::unique_ptr<Reader> observer) {
  std::shared_ptr<NeliThreads> it(new NeliThreads(std::move(options), std::move(log), std::move(observer)));
  it->start("tenure-kafka", "tenure-k-read");
  return it;
}

void NeliThreads::begin(const Timing& timing, const Pace& pace) {
  pace_ = pace;
  neli_.emplace(Neli::Config{.lease = std::chrono::ceil<milliseconds>(timing.term),
                             .margin = timing.margin,
                             .observe_every = pace.observe_every,
                             .name = options_.candidate.name,
                             .address = options_.candidate.address,
                             .incarnation = incarnation_,
                             .first_claim_waits = options_.first_claim == FirstClaim::wait,
                             .remote_step_down = options_.remote_step_down,
                             .highest = HighestTokens::of(election_key(options_))});
  mailbox_.open();
}

CallResult NeliThreads::call(fact::Called what, const Limit& limit) {
  const auto called = [&what](std::uint64_t id, Clock::Time by) {
    what.id = id, what.by = by;
    return what;
  };
  const auto abandoned = [](std::uint64_t id) { return fact::Abandoned{id}; };
  return mailbox_.call(limit, called, abandoned).value_or(std::monostate());
}

std::optional<Client::Standing> NeliThreads::place(Token token) {
  const std::lock_guard lock(place_mutex_);
  if (!place_ || place_->first != token) return std::nullopt;
  lent_ = true;
  return place_->second;
}

// ---- the serving thread ----

void NeliThreads::publish_place() {
  const auto token = neli_->leads_in_generation();
  bool over = false;
  {
    const std::lock_guard lock(place_mutex_);
    if (place_ && token == place_->first) return;
    over = std::exchange(lent_, false);
    place_.reset();
    if (token && standing_.generation >= 0 && !standing_.member.empty()) place_.emplace(*token, standing_);
  }
  if (over) handle(fact::Lent{});
}

void NeliThreads::handled() {
  publish_place();
  if (neli_->highest() == published_highest_) return;
  published_highest_ = neli_->highest();
  HighestTokens::keep(election_key(options_), published_highest_);
}

void NeliThreads::carry_out(effect::Open& asked) { open(asked, record_and_nonce); }

void NeliThreads::carry_out(effect::ReadMember& read) {
  reading_.add_first([this, id = read.id, client = member_.client()] {
    mailbox_.post(fact::MemberRead{id, tried([&] { return read_as_member(*client); })});
  });
}

void NeliThreads::carry_out(effect::Observe& asked) {
  reading_.add([this, asked] {
    auto found = tried([&] { return observe(asked); });
    observer_->judge(bool(found));
    const bool first = asked.check_topic && asked.create;
    const bool new_group = first && found && !*found && observer_->client().no_such_group(read_limit);
    mailbox_.post(fact::Observed{asked.id, std::move(found), new_group});
  });
}

void NeliThreads::carry_out(effect::ReadRequests&) {
  reading_.add([this] { mailbox_.post(fact::Requested{tried([this] { return read_requests(); })}); });
}

// ---- the reading thread ----

/// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
Result<Reading> NeliThreads::read_as_member(Client& member) {
  auto found = member.committed(record_and_nonce, read_limit);
  if (!found && found.error().fault == Fault::timed_out)
    return Error{
        Fault::timed_out,
        "reading the record: the coordinator took a commit, and answers no read. Perhaps a former leader has a "
        "transaction open (kafka::Transactions): it ends by its transaction.timeout.ms, or up to 10 s later"};
  if (!found) return std::move(found).error();
  auto& commits = *found;
  return Reading{std::move(commits[0]), commits[1] ? std::move(commits[1]->metadata) : std::string()};
}

Result<std::optional<Commit>> NeliThreads::read_requests() {
  if (!requests_) requests_ = std::make_unique<Reader>(options_, requests_group(options_.group), log_);
  auto& client = requests_->client();
  auto found = client.with_reason(client.committed(1, read_limit));
  requests_->judge(bool(found));
  if (!found) return std::move(found).error();
  return std::move((*found)[0]);
}

Result<std::optional<Commit>> NeliThreads::observe(const effect::Observe& asked) {
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

}  // namespace tenure::kafka
