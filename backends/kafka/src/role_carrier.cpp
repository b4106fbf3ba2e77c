// SPDX-License-Identifier: Apache-2.0
#include "role_carrier.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/names.hpp>
#include <tenure/kit/start_thread.hpp>

#include "create_topic.hpp"
#include "roles.hpp"
#include "shared_roles.hpp"
#include "unit_numbers.hpp"

namespace tenure::kafka {
RoleCarrier::RoleCarrier(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
                         std::unique_ptr<Reader> observer)
    : options_(std::move(options)),
      units_(units),
      exclusive_(exclusive),
      log_(std::move(log)),
      observer_(std::move(observer)),
      incarnation_(draw_incarnation()),
      member_(log_, mailbox_.waker()) {}

std::shared_ptr<RoleCarrier> RoleCarrier::make(Options options, int units, Exclusive exclusive,
                                               std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer) {
  std::shared_ptr<RoleCarrier> it(
      new RoleCarrier(std::move(options), units, exclusive, std::move(log), std::move(observer)));
  it->serve_thread_ = start_thread("tenure-roles", [it] { it->serve(); });
  try {
    it->reading_.start("tenure-r-read", it);
  } catch (...) {
    it->stop();
    throw;
  }
  return it;
}

void RoleCarrier::begin(const Timing& timing, const Pace& pace) {
  pace_ = pace;
  roles_ = machine(timing);
  mailbox_.open();
}

std::unique_ptr<RoleMachine> RoleCarrier::machine(const Timing& timing) const {
  const RoleConfig config{.units = units_,
                          .lease = std::chrono::ceil<std::chrono::milliseconds>(timing.term),
                          .margin = timing.margin,
                          .session = pace_.session,
                          .observe_every = pace_.observe_every,
                          .incarnation = incarnation_,
                          .first_claim_waits = options_.first_claim == FirstClaim::wait};
  if (exclusive_ == Exclusive::no) return std::make_unique<SharedRoles>(config);
  return std::make_unique<Roles>(config);
}

void RoleCarrier::stop() {
  mailbox_.close();
  serve_thread_.join();
  log_->close();
  reading_.stop();
}

std::optional<RoleAnswer> RoleCarrier::call(RoleCall what, const Limit& limit) {
  const auto called = [&what](std::uint64_t id, Clock::Time by) { return role_fact::Called{id, std::move(what), by}; };
  const auto abandoned = [](std::uint64_t id) { return role_fact::Abandoned{id}; };
  return mailbox_.call(limit, called, abandoned);
}

// ---- the serving thread ----

void RoleCarrier::serve() {
  mailbox_.serve({.handle = [this](const RoleFact& fact) { handle(fact); },
                  .take_events = [this] { take_events(); },
                  .alarm = [this] { return std::min(roles_->alarm(), member_.next_nudge()); },
                  .give_handle_up =
                      [this](const std::string& why) {
                        handle(role_fact::Broken{any_handle, {Fault::unreachable, why}});
                      },
                  .elapsed = role_fact::Elapsed{},
                  .closing = role_fact::Closing{}},
                 *log_);
}

void RoleCarrier::take_events() {
  // A fact may drop the handle, or open another.
  while (const auto client = member_.client()) {
    const auto event = client->next_event();
    if (!event) return;
    const auto handle_number = member_.handle();
    using Kind = Client::Event::Kind;
    switch (event->kind) {
      case Kind::assigned: handle(role_fact::Assigned{handle_number, event->partitions, client->generation()}); break;
      case Kind::revoked: handle(role_fact::Revoked{handle_number, event->lost}); break;
      case Kind::committed:
        handle(role_fact::Committed{event->id, outcome_of(event->code),
                                    event->code ? client->explained(event->code, "offset commit") : Error{},
                                    event->again});
        break;
      case Kind::trouble:
        if (needs_the_user(event->code, event->text))
          handle(role_fact::Troubled{handle_number, client->explained(event->code, event->text)});
        break;
      case Kind::fatal: handle(role_fact::Broken{handle_number, client->explained(event->code, event->text)}); break;
    }
  }
}

void RoleCarrier::handle(const RoleFact& fact) {
  auto& clock = boot_clock();
  for (auto& next : roles_->on(fact, clock.now(), clock.unix_ms())) std::visit([this](auto& a) { carry_out(a); }, next);
}

void RoleCarrier::carry_out(role_effect::Open& open) {
  if (auto error = member_.open(open.handle, options_, pace_, open.client_id, partitions_of(roles_->units())))
    post(role_fact::Broken{open.handle, std::move(*error)});
}

void RoleCarrier::carry_out(role_effect::Assign&) {
  if (member_.client()) member_.client()->assign_nothing();
}

void RoleCarrier::carry_out(role_effect::Unassign&) {
  if (member_.client()) member_.client()->unassign();
}

void RoleCarrier::carry_out(role_effect::SendCommit& send) {
  const auto& client = member_.client();
  const auto code = client ? client->commit(send.id, send.commits) : RD_KAFKA_RESP_ERR__STATE;
  if (code) post(role_fact::Committed{send.id, Outcome::failed, observer_->explained(code, "offset commit")});
}

/// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
void RoleCarrier::carry_out(role_effect::ReadMember& read) {
  reading_.add_first([this, read, client = member_.client()] {
    post(role_fact::MemberRead{read.id, tried([&] { return client->committed(read.partitions, read_limit); })});
  });
}

void RoleCarrier::carry_out(role_effect::Observe& asked) {
  reading_.add([this, asked] {
    auto seen = observe(asked);
    observer_->judge(bool(seen.result));
    post(std::move(seen));
  });
}

void RoleCarrier::carry_out(role_effect::FindOwners&) {
  reading_.add(
      [this] { post(role_fact::OwnersFound{tried([this] { return observer_->client().owners(read_limit); })}); });
}

void RoleCarrier::carry_out(role_effect::Drop& drop) {
  member_.drop([weak = weak_from_this(), handle = drop.handle] {
    if (const auto self = weak.lock()) self->post(role_fact::Left{handle});
  });
}

void RoleCarrier::carry_out(role_effect::Reply& reply) { mailbox_.answer(reply.id, std::move(reply.answer)); }
void RoleCarrier::carry_out(role_effect::Tell& report) { log_->write(report.level, report.message); }

// ---- the reading thread ----

role_fact::Observed RoleCarrier::observe(const role_effect::Observe& asked) {
  role_fact::Observed out{Result<role_fact::Offsets>(role_fact::Offsets())};
  out.result = tried([&]() -> Result<role_fact::Offsets> {
    if (asked.topic) {
      auto partitions = topic(asked);
      if (!partitions && asked.check) return std::move(partitions).error();
      if (partitions && *partitions == 0) return role_fact::Offsets(static_cast<std::size_t>(asked.partitions));
      if (partitions) out.topic = *partitions;
    }
    auto& client = observer_->client();
    return client.with_reason(client.committed(asked.partitions, read_limit));
  });
  return out;
}

/// A topic that has more room than we need may have grown while we did not run. We need what the group has by now: it
/// may have grown since we began.
Result<int> RoleCarrier::topic(const role_effect::Observe& asked) {
  const int needed = asked.partitions;
  auto options = options_;
  if (options.create_topic) options.create_topic->partitions = needed;
  auto found = topic_partitions(options, asked.create, observer_->client(), reading_.waker(), *log_);
  if (!found || !asked.check || *found == 0 || *found == needed ||
      (exclusive_ == Exclusive::yes && is_multiple(*found, needed)))
    return found;
  return Error{Fault::misconfigured, "Topic \"" + options_.topic + "\" has " + std::to_string(*found) +
                                         " partitions, and the roles need " + std::to_string(needed) +
                                         ": three for each unit. Give `units` so that it fits, the same in all "
                                         "processes, or use another topic"};
}

}  // namespace tenure::kafka
