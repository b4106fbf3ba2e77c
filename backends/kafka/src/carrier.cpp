// SPDX-License-Identifier: Apache-2.0
#include "carrier.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tenure/kit/names.hpp>
#include <tenure/kit/start_thread.hpp>

#include "create_topic.hpp"
#include "fork_safe.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;

/// Of the topic: the record's, and the nonce's.
constexpr int record_and_nonce = 2;

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

Carrier::Carrier(Options options, std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer)
    : options_(std::move(options)),
      log_(std::move(log)),
      observer_(std::move(observer)),
      incarnation_(draw_incarnation()),
      member_(log_, mailbox_.waker()) {}

std::shared_ptr<Carrier> Carrier::make(Options options, std::shared_ptr<ClosableLog> log,
                                       std::unique_ptr<Reader> observer) {
  std::shared_ptr<Carrier> it(new Carrier(std::move(options), std::move(log), std::move(observer)));
  it->serve_thread_ = start_thread("tenure-kafka", [it] { it->serve(); });
  try {
    it->reading_.start("tenure-k-read", it);
  } catch (...) {
    it->stop();
    throw;
  }
  return it;
}

void Carrier::begin(const Timing& timing, const Pace& pace) {
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

void Carrier::stop() {
  mailbox_.close();
  serve_thread_.join();
  log_->close();
  reading_.stop();
}

Carrier::CallResult Carrier::call(fact::Called what, const Limit& limit) {
  const auto called = [&what](std::uint64_t id, Clock::Time by) {
    what.id = id, what.by = by;
    return what;
  };
  const auto abandoned = [](std::uint64_t id) { return fact::Abandoned{id}; };
  return mailbox_.call(limit, called, abandoned).value_or(std::monostate());
}

// ---- the serving thread ----

void Carrier::serve() {
  mailbox_.serve({.handle = [this](const Fact& fact) { handle(fact); },
                  .take_events = [this] { take_events(); },
                  .alarm = [this] { return std::min(neli_->alarm(), member_.next_nudge()); },
                  .give_handle_up =
                      [this](const std::string& why) {
                        handle(fact::Broken{any_handle, {Fault::unreachable, why}});
                      },
                  .elapsed = fact::Elapsed{},
                  .closing = fact::Closing{}},
                 *log_);
}

void Carrier::take_events() {
  // A fact may drop the handle, or open another.
  while (const auto client = member_.client()) {
    const auto event = client->next_event();
    if (!event) return;
    const auto handle_number = member_.handle();
    using Kind = Client::Event::Kind;
    switch (event->kind) {
      case Kind::assigned: handle(fact::Assigned{handle_number, event->owner, client->generation()}); break;
      case Kind::revoked: handle(fact::Revoked{handle_number, event->lost}); break;
      case Kind::committed:
        handle(fact::Committed{event->id, outcome_of(event->code),
                               event->code ? client->explained(event->code, "offset commit") : Error{}, event->again});
        break;
      case Kind::trouble:
        if (needs_the_user(event->code, event->text))
          handle(fact::Troubled{handle_number, client->explained(event->code, event->text)});
        break;
      case Kind::fatal: handle(fact::Broken{handle_number, client->explained(event->code, event->text)}); break;
    }
  }
}

void Carrier::handle(const Fact& fact) {
  auto& clock = boot_clock();
  for (auto& next : neli_->on(fact, clock.now(), clock.unix_ms())) std::visit([this](auto& a) { carry_out(a); }, next);
  if (neli_->highest() == published_highest_) return;
  published_highest_ = neli_->highest();
  HighestTokens::keep(election_key(options_), published_highest_);
}

void Carrier::carry_out(effect::Open& open) {
  if (auto error = member_.open(open.handle, options_, pace_, open.client_id, record_and_nonce))
    mailbox_.post(fact::Broken{open.handle, std::move(*error)});
}

void Carrier::carry_out(effect::Assign&) {
  if (member_.client()) member_.client()->assign_nothing();
}

void Carrier::carry_out(effect::Unassign&) {
  if (member_.client()) member_.client()->unassign();
}

void Carrier::carry_out(effect::SendCommit& send) {
  const auto& client = member_.client();
  const auto code = client ? client->commit(send.id, send.partition, send.commit) : RD_KAFKA_RESP_ERR__STATE;
  if (code) mailbox_.post(fact::Committed{send.id, Outcome::failed, observer_->explained(code, "offset commit")});
}

void Carrier::carry_out(effect::ReadMember& read) {
  reading_.add_first([this, id = read.id, client = member_.client()] {
    mailbox_.post(fact::MemberRead{id, tried([&] { return read_as_member(*client); })});
  });
}

void Carrier::carry_out(effect::Observe& asked) {
  reading_.add([this, asked] {
    auto found = tried([&] { return observe(asked); });
    observer_->judge(bool(found));
    mailbox_.post(fact::Observed{asked.id, std::move(found)});
  });
}

void Carrier::carry_out(effect::ReadRequests&) {
  reading_.add([this] { mailbox_.post(fact::Requested{tried([this] { return read_requests(); })}); });
}

void Carrier::carry_out(effect::FindOwners&) {
  reading_.add(
      [this] { mailbox_.post(fact::OwnersFound{tried([this] { return observer_->client().owners(read_limit); })}); });
}

void Carrier::carry_out(effect::Drop& drop) {
  member_.drop([weak = weak_from_this(), handle = drop.handle] {
    if (const auto self = weak.lock()) self->mailbox_.post(fact::Left{handle});
  });
}

void Carrier::carry_out(effect::Reply& reply) { mailbox_.answer(reply.id, std::move(reply.answer)); }
void Carrier::carry_out(effect::ReplySight& reply) { mailbox_.answer(reply.id, std::move(reply.sight)); }
void Carrier::carry_out(effect::ReplyReleased& reply) { mailbox_.answer(reply.id, std::move(reply.error)); }
void Carrier::carry_out(effect::Wake& wake) { mailbox_.answer(wake.id, Sight{}); }
void Carrier::carry_out(effect::Tell& report) { log_->write(report.level, report.message); }

// ---- the reading thread ----

/// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
Result<Reading> Carrier::read_as_member(Client& member) {
  auto found = member.committed(record_and_nonce, read_limit);
  if (!found) return std::move(found).error();
  auto& commits = *found;
  return Reading{std::move(commits[0]), commits[1] ? std::move(commits[1]->metadata) : std::string()};
}

Result<std::optional<Commit>> Carrier::read_requests() {
  if (!requests_) requests_ = std::make_unique<Reader>(options_, requests_group(options_.group), log_);
  auto& client = requests_->client();
  auto found = client.with_reason(client.committed(1, read_limit));
  requests_->judge(bool(found));
  if (!found) return std::move(found).error();
  return std::move((*found)[0]);
}

Result<std::optional<Commit>> Carrier::observe(const effect::Observe& asked) {
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
