// SPDX-License-Identifier: Apache-2.0
#include "role_carrier.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/names.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/kit/wait.hpp>

#include "create_topic.hpp"
#include "roles.hpp"
#include "shared_roles.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;

/// The limit of a read that blocks. It is well below any lease.
constexpr auto role_read_limit = milliseconds(1500);
/// librdkafka keeps heartbeats of this interval or longer by itself.
constexpr auto unaided_heartbeat = milliseconds(500);
constexpr auto pause_after_throw = milliseconds(100);

}  // namespace

RoleCarrier::RoleCarrier(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
                         std::shared_ptr<Client> observer)
    : options_(std::move(options)),
      units_(units),
      exclusive_(exclusive),
      log_(std::move(log)),
      observer_(std::move(observer)),
      reaper_(Reaper::instance()),
      incarnation_(draw_incarnation()),
      serve_wakes_(boot_clock().make_waker()),
      caller_wakes_(boot_clock().make_waker()),
      read_wakes_(boot_clock().make_waker()) {}

std::shared_ptr<RoleCarrier> RoleCarrier::make(Options options, int units, Exclusive exclusive,
                                               std::shared_ptr<ClosableLog> log, std::shared_ptr<Client> observer) {
  std::shared_ptr<RoleCarrier> it(
      new RoleCarrier(std::move(options), units, exclusive, std::move(log), std::move(observer)));
  it->serve_thread_ = start_thread("tenure-roles", [it] { it->serve(); });
  try {
    it->read_thread_ = start_thread("tenure-r-read", [self = it, over = it->read_over_]() mutable {
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

void RoleCarrier::begin(const Timing& timing, const Pace& pace) {
  {
    const std::lock_guard lock(mutex_);
    pace_ = pace;
    roles_ = machine(timing);
    begun_ = true;
  }
  serve_wakes_->wake();
}

std::unique_ptr<RoleMachine> RoleCarrier::machine(const Timing& timing) const {
  const RoleConfig config{.units = units_,
                          .lease = std::chrono::ceil<milliseconds>(timing.term),
                          .margin = timing.margin,
                          .session = pace_.session,
                          .observe_every = pace_.observe_every,
                          .incarnation = incarnation_,
                          .first_claim_waits = options_.first_claim == FirstClaim::wait};
  if (exclusive_ == Exclusive::no) return std::make_unique<SharedRoles>(config);
  return std::make_unique<Roles>(config);
}

void RoleCarrier::stop() {
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

void RoleCarrier::post(RoleFact fact) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(fact));
  }
  serve_wakes_->wake();
}

std::optional<RoleAnswer> RoleCarrier::call(RoleCall what, const Limit& limit) {
  const Limit own{boot_clock(), by_boot_clock(limit), limit.stop};
  std::uint64_t id{};
  {
    const std::lock_guard lock(mutex_);
    id = ++last_call_;
    answer_.reset();
    inbox_.emplace_back(role_fact::Called{id, std::move(what), own.by});
  }
  serve_wakes_->wake();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (answer_) return std::exchange(answer_, std::nullopt);
      if (own.passed()) {
        ++last_call_;  // nobody gets an answer that comes from here on
        inbox_.emplace_back(role_fact::Abandoned{id});
        break;
      }
    }
    wait(*caller_wakes_, own);
  }
  serve_wakes_->wake();
  return std::nullopt;
}

// ---- the serving thread ----

void RoleCarrier::serve() {
  for (bool last = false; !last;) {
    std::vector<RoleFact> facts;
    bool begun = false;
    {
      const std::lock_guard lock(mutex_);
      begun = begun_;
      if (begun) facts.swap(inbox_);
      last = quit_;
    }
    bool well = true;
    if (begun) {
      if (last) facts.emplace_back(role_fact::Closing{});
      for (const auto& fact : facts) well &= survives([&] { handle(fact); });
      well &= survives([this] { take_events(); });
      well &= survives([this] { handle(role_fact::Elapsed{}); });
    }
    if (last) break;
    const auto at = begun ? std::min(roles_->alarm(), next_nudge()) : Clock::Time::max();
    serve_wakes_->wait_until(well ? at : boot_clock().now() + pause_after_throw);
  }
}

/// Most likely memory ran out. The handle is given up, because nobody knows its state any more.
bool RoleCarrier::survives(const std::function<void()>& work) {
  const auto tried = [this](const auto& what) {
    try {
      what();
      return std::string();
    } catch (const std::exception& e) {
      log_->write(Level::error, e.what());
      return std::string(e.what());
    }
  };
  const auto why = tried(work);
  if (why.empty()) return true;
  tried([&] { handle(role_fact::Broken{handle_, {Fault::unreachable, why}}); });
  return false;
}

void RoleCarrier::take_events() {
  // A fact may drop the handle, or open another.
  while (const auto client = member_) {
    const auto event = client->next_event();
    if (!event) return;
    using Kind = Client::Event::Kind;
    switch (event->kind) {
      case Kind::assigned: handle(role_fact::Assigned{handle_, event->partitions, client->generation()}); break;
      case Kind::revoked: handle(role_fact::Revoked{handle_, event->lost}); break;
      case Kind::committed:
        handle(role_fact::Committed{event->id, outcome_of(event->code),
                                    event->code ? client->explained(event->code, "offset commit") : Error{}});
        break;
      case Kind::trouble:
        if (needs_the_user(event->code))
          handle(role_fact::Troubled{handle_, client->explained(event->code, event->text)});
        break;
      case Kind::fatal: handle(role_fact::Broken{handle_, client->explained(event->code, event->text)}); break;
    }
  }
}

void RoleCarrier::handle(const RoleFact& fact) {
  auto& clock = boot_clock();
  for (auto& next : roles_->on(fact, clock.now(), clock.unix_ms())) std::visit([this](auto& a) { carry_out(a); }, next);
}

/// When librdkafka's main loop is woken next, for a heartbeat faster than its own, or for a poll in time.
Clock::Time RoleCarrier::next_nudge() {
  if (!member_) return Clock::Time::max();
  const auto now = boot_clock().now();
  const bool fast = pace_.heartbeat < unaided_heartbeat;
  if (now >= nudge_at_) {
    if (fast) member_->nudge();
    nudge_at_ = now + (fast ? pace_.heartbeat / 2 : pace_.session / 4);
  }
  return nudge_at_;
}

void RoleCarrier::carry_out(role_effect::Open& open) {
  handle_ = open.handle;
  try {
    member_ = std::make_shared<Client>(member_properties(options_, pace_, open.client_id),
                                       target_of(options_, partitions_of(units_)), log_);
  } catch (const std::exception& e) {
    return post(role_fact::Broken{open.handle, {Fault::misconfigured, e.what()}});
  }
  nudge_at_ = boot_clock().now();
  member_->on_events(serve_wakes_);
  if (auto error = member_->subscribe()) post(role_fact::Broken{open.handle, std::move(*error)});
}

void RoleCarrier::carry_out(role_effect::Assign&) {
  if (member_) member_->assign_nothing();
}

void RoleCarrier::carry_out(role_effect::Unassign&) {
  if (member_) member_->unassign();
}

void RoleCarrier::carry_out(role_effect::SendCommit& send) {
  const auto code = member_ ? member_->commit(send.id, send.commits) : RD_KAFKA_RESP_ERR__STATE;
  if (code) post(role_fact::Committed{send.id, Outcome::failed, observer_->explained(code, "offset commit")});
}

void RoleCarrier::carry_out(role_effect::ReadMember& read) {
  // By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
  queue(
      [client = member_, id = read.id, partitions = partitions_of(units_)]() -> RoleFact {
        try {
          return role_fact::MemberRead{id, client->committed(partitions, role_read_limit)};
        } catch (const std::exception& e) {
          return role_fact::MemberRead{id, Error{Fault::unreachable, e.what()}};
        }
      },
      true);
}

void RoleCarrier::carry_out(role_effect::Observe& asked) {
  queue(
      [this, check = asked.check_topic]() -> RoleFact {
        try {
          return observe(check);
        } catch (const std::exception& e) {
          return role_fact::Observed{Error{Fault::unreachable, e.what()}};
        }
      },
      false);
}

void RoleCarrier::carry_out(role_effect::Drop& drop) {
  if (!member_) return post(role_fact::Left{drop.handle});
  member_->unsubscribe();
  reaper_.close(std::exchange(member_, nullptr), [weak = weak_from_this(), handle = drop.handle] {
    if (const auto self = weak.lock()) self->post(role_fact::Left{handle});
  });
}

void RoleCarrier::carry_out(role_effect::Reply& reply) {
  {
    const std::lock_guard lock(mutex_);
    if (reply.id != last_call_) return;  // the caller has left, and Roles will hear of it
    answer_ = std::move(reply.answer);
  }
  caller_wakes_->wake();
}

void RoleCarrier::carry_out(role_effect::Tell& report) { log_->write(report.level, report.message); }

// ---- the reading thread ----

void RoleCarrier::queue(Job job, bool first) {
  {
    const std::lock_guard lock(mutex_);
    if (first)
      jobs_.push_front(std::move(job));
    else
      jobs_.push_back(std::move(job));
  }
  read_wakes_->wake();
}

void RoleCarrier::read() {
  for (;;) {
    Job job;
    {
      const std::lock_guard lock(mutex_);
      if (read_quit_) break;
      if (!jobs_.empty()) {
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
    }
    if (job)
      post(job());
    else
      read_wakes_->wait_until(Clock::Time::max());
  }
}

role_fact::Observed RoleCarrier::observe(bool check_topic) {
  const int partitions = partitions_of(units_);
  if (check_topic)
    if (auto error = topic_trouble(options_, *observer_, *read_wakes_, *log_, partitions)) return {std::move(*error)};
  return {observer_->with_reason(observer_->committed(partitions, role_read_limit))};
}

}  // namespace tenure::kafka
