// SPDX-License-Identifier: Apache-2.0
#include "carrier.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/kit/wait.hpp>

#include "create_topic.hpp"
#include "fork_safe.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;

/// The limit of a read that blocks. It is well below any lease, so that a hung coordinator costs one read.
constexpr auto read_limit = milliseconds(1500);
/// librdkafka keeps heartbeats of this interval or longer by itself.
constexpr auto own_heartbeat = milliseconds(500);
/// The pause of the serving thread after something threw.
constexpr auto after_throw = milliseconds(100);

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

Fact failed(const ReadJob& job, Error error) {
  switch (job.kind) {
    case ReadJob::Kind::observe: return fact::Observed{job.id, std::move(error)};
    case ReadJob::Kind::member: return fact::MemberRead{job.id, std::move(error)};
    case ReadJob::Kind::requests: return fact::Requested{std::move(error)};
    case ReadJob::Kind::owner: break;
  }
  return fact::OwnerFound{std::move(error)};
}

}  // namespace

Carrier::Carrier(Options options, std::shared_ptr<ClosableLog> log, std::shared_ptr<Client> observer)
    : options_(std::move(options)),
      log_(std::move(log)),
      observer_(std::move(observer)),
      reaper_(Reaper::instance()),
      incarnation_(draw_incarnation()),
      serve_wakes_(boot_clock().make_waker()),
      caller_wakes_(boot_clock().make_waker()),
      read_wakes_(boot_clock().make_waker()) {}

std::shared_ptr<Carrier> Carrier::make(Options options, std::shared_ptr<ClosableLog> log,
                                       std::shared_ptr<Client> observer) {
  std::shared_ptr<Carrier> it(new Carrier(std::move(options), std::move(log), std::move(observer)));
  it->serve_thread_ = start_thread("tenure-kafka", [it] { it->serve(); });
  try {
    it->read_thread_ = start_thread("tenure-k-read", [self = it, over = it->read_over_]() mutable {
      self->read();
      self.reset();  // This may free the observer, which may be slow: the join must not wait for it.
      *over = true;
    });
  } catch (...) {
    it->stop();
    throw;
  }
  return it;
}

void Carrier::begin(const Timing& timing, const Pace& pace) {
  const std::lock_guard lock(mutex_);
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
}

void Carrier::stop() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  serve_wakes_->wake();
  serve_thread_.join();
  log_->close();
  {
    const std::lock_guard lock(mutex_);
    read_quit_ = true;
  }
  read_wakes_->wake();
  if (read_thread_.joinable()) reaper_.join(std::move(read_thread_), read_over_);
}

Carrier::CallResult Carrier::call(fact::Called what, const Limit& limit) {
  const Limit own{boot_clock(), by_boot_clock(limit), limit.stop};
  {
    const std::lock_guard lock(mutex_);
    what.id = ++last_call_;
    what.by = own.by;
    result_ = std::monostate();
    inbox_.push_back(what);
  }
  serve_wakes_->wake();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (result_.index() != 0) return std::exchange(result_, std::monostate());
      if (own.passed()) {
        ++last_call_;  // nobody gets an answer that comes from here on
        inbox_.push_back(fact::Abandoned{what.id});
        break;
      }
    }
    wait(*caller_wakes_, own);
  }
  serve_wakes_->wake();
  return std::monostate();
}

void Carrier::post(Fact fact) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(fact));
  }
  serve_wakes_->wake();
}

// ---- the serving thread ----

void Carrier::serve() {
  std::vector<Fact> facts;
  for (bool last = false; !last;) {
    bool begun = false;
    {
      const std::lock_guard lock(mutex_);
      facts.swap(inbox_);
      last = quit_;
      begun = neli_.has_value();
    }
    bool well = true;
    if (begun) {
      if (last) facts.emplace_back(fact::Closing{});
      for (const auto& fact : facts) well &= survives([&] { handle(fact); });
      facts.clear();
      well &= survives([this] { take_events(); });
      well &= survives([this] { handle(fact::Elapsed{}); });
    }
    if (last) break;
    const auto at = begun ? std::min(neli_->alarm(), next_nudge()) : Clock::Time::max();
    serve_wakes_->wait_until(well ? at : boot_clock().now() + after_throw);
  }
}

/// Most likely memory ran out. The handle is given up, because nobody knows its state any more.
bool Carrier::survives(auto what_to_do) {
  const auto tried = [this](auto what) {
    try {
      what();
      return std::string();
    } catch (const std::exception& e) {
      log_->write(Level::error, e.what());
      return std::string(e.what());
    }
  };
  const auto why = tried(what_to_do);
  if (why.empty()) return true;
  tried([&] { handle(fact::Broken{handle_, {Fault::unreachable, why}}); });
  return false;
}

void Carrier::take_events() {
  // A fact may drop the handle, or open another.
  while (const auto client = member_) {
    const auto event = client->next_event();
    if (!event) return;
    using Kind = Client::Event::Kind;
    switch (event->kind) {
      case Kind::assigned: handle(fact::Assigned{handle_, event->owner, client->generation()}); break;
      case Kind::revoked: handle(fact::Revoked{handle_, event->lost}); break;
      case Kind::committed:
        handle(fact::Committed{event->id, outcome_of(event->code),
                               event->code ? client->explained(event->code, "offset commit") : Error{}});
        break;
      case Kind::trouble:
        if (needs_the_user(event->code)) handle(fact::Troubled{handle_, client->explained(event->code, event->text)});
        break;
      case Kind::fatal: handle(fact::Broken{handle_, client->explained(event->code, event->text)}); break;
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

/// When librdkafka's main loop is woken next, for a heartbeat faster than its own, or for a poll in time.
Clock::Time Carrier::next_nudge() {
  if (!member_) return Clock::Time::max();
  const auto now = boot_clock().now();
  const bool fast = pace_.heartbeat < own_heartbeat;
  if (now >= nudge_at_) {
    if (fast) member_->nudge();
    nudge_at_ = now + (fast ? pace_.heartbeat / 2 : pace_.session / 4);
  }
  return nudge_at_;
}

void Carrier::carry_out(effect::Open& open) {
  handle_ = open.handle;
  try {
    member_ = std::make_shared<Client>(member_properties(options_, pace_, open.client_id), target_of(options_), log_);
  } catch (const std::exception& e) {
    return post(fact::Broken{open.handle, {Fault::misconfigured, e.what()}});
  }
  nudge_at_ = boot_clock().now();
  member_->on_events(serve_wakes_);
  if (auto error = member_->subscribe()) post(fact::Broken{open.handle, std::move(*error)});
}

void Carrier::carry_out(effect::Assign&) {
  if (member_) member_->assign_nothing();
}

void Carrier::carry_out(effect::Unassign&) {
  if (member_) member_->unassign();
}

void Carrier::carry_out(effect::SendCommit& send) {
  const auto code = member_ ? member_->commit(send.id, send.partition, send.commit) : RD_KAFKA_RESP_ERR__STATE;
  if (code) post(fact::Committed{send.id, Outcome::failed, observer_->explained(code, "offset commit")});
}

void Carrier::carry_out(effect::ReadMember& read) {
  queue({.kind = ReadJob::Kind::member, .id = read.id, .check_topic = false, .client = member_});
}

void Carrier::carry_out(effect::Observe& observe) {
  queue({.kind = ReadJob::Kind::observe, .id = observe.id, .check_topic = observe.check_topic, .client = {}});
}

void Carrier::carry_out(effect::ReadRequests&) {
  queue({.kind = ReadJob::Kind::requests, .id = 0, .check_topic = false, .client = {}});
}

void Carrier::carry_out(effect::FindOwner&) {
  queue({.kind = ReadJob::Kind::owner, .id = 0, .check_topic = false, .client = {}});
}

void Carrier::carry_out(effect::Drop& drop) {
  if (!member_) return post(fact::Left{drop.handle});
  member_->unsubscribe();
  reaper_.close(std::exchange(member_, nullptr), [weak = weak_from_this(), handle = drop.handle] {
    if (const auto self = weak.lock()) self->post(fact::Left{handle});
  });
}

void Carrier::carry_out(effect::Reply& reply) { answer(reply.id, std::move(reply.answer)); }
void Carrier::carry_out(effect::ReplySight& reply) { answer(reply.id, std::move(reply.sight)); }
void Carrier::carry_out(effect::ReplyReleased& reply) { answer(reply.id, std::move(reply.error)); }
void Carrier::carry_out(effect::Wake& wake) { answer(wake.id, Sight{}); }
void Carrier::carry_out(effect::Tell& report) { log_->write(report.level, report.message); }

void Carrier::answer(std::uint64_t id, CallResult result) {
  {
    const std::lock_guard lock(mutex_);
    if (id != last_call_) return;  // the caller has left, and Neli will hear of it
    result_ = std::move(result);
  }
  caller_wakes_->wake();
}

// ---- the reading thread ----

void Carrier::queue(ReadJob job) {
  {
    const std::lock_guard lock(mutex_);
    // A read that decides a claim goes first.
    if (job.kind == ReadJob::Kind::member)
      jobs_.push_front(std::move(job));
    else
      jobs_.push_back(std::move(job));
  }
  read_wakes_->wake();
}

void Carrier::read() {
  for (;;) {
    std::optional<ReadJob> job;
    {
      const std::lock_guard lock(mutex_);
      if (read_quit_) break;
      if (!jobs_.empty()) {
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
    }
    if (job)
      post(result_of(*job));
    else
      read_wakes_->wait_until(Clock::Time::max());
  }
}

Fact Carrier::result_of(const ReadJob& job) {
  try {
    return carry_out(job);
  } catch (const std::exception& e) {
    return failed(job, {Fault::unreachable, e.what()});
  }
}

Fact Carrier::carry_out(const ReadJob& job) {
  switch (job.kind) {
    case ReadJob::Kind::observe: return observe(job);
    case ReadJob::Kind::member: return read_as_member(job);
    case ReadJob::Kind::requests: return read_requests();
    case ReadJob::Kind::owner: break;
  }
  return fact::OwnerFound{observer_->owner(read_limit)};
}

/// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
Fact Carrier::read_as_member(const ReadJob& job) {
  auto found = job.client->committed(2, read_limit);
  if (!found) return fact::MemberRead{job.id, std::move(found).error()};
  auto& commits = *found;
  return fact::MemberRead{job.id,
                          Reading{std::move(commits[0]), commits[1] ? std::move(commits[1]->metadata) : std::string()}};
}

Fact Carrier::read_requests() {
  if (!requests_) requests_ = make_observer(options_, requests_group(options_.group), log_);
  auto found = requests_->with_reason(requests_->committed(1, read_limit));
  if (!found) return fact::Requested{std::move(found).error()};
  return fact::Requested{std::move((*found)[0])};
}

Fact Carrier::observe(const ReadJob& job) {
  if (job.check_topic)
    if (auto error = topic_trouble(options_, *observer_, *read_wakes_, *log_))
      return fact::Observed{job.id, std::move(*error)};
  auto found = observer_->with_reason(observer_->committed(1, read_limit));
  if (!found) return fact::Observed{job.id, std::move(found).error()};
  return fact::Observed{job.id, std::move((*found)[0])};
}

}  // namespace tenure::kafka
