// SPDX-License-Identifier: Apache-2.0
// The store behind Elections, and open_group().
#include "role_store.hpp"

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include <tenure/kafka_group.hpp>
#include <tenure/kit/store.hpp>

#include "settings.hpp"

namespace tenure::kafka {

RoleStore::RoleStore(std::shared_ptr<RoleCarrier> carrier)
    : carrier_(std::move(carrier)), made_by_(::getpid()), timing_(group_presets(carrier_->exclusive()).balanced) {}

RoleStore::~RoleStore() {
  if (forked())
    new std::shared_ptr<RoleCarrier>(std::move(carrier_));  // never freed: its threads are the parent's
  else
    carrier_->stop();
}

std::string RoleStore::group() const { return carrier_->options().group; }

void RoleStore::joined(const std::string& election) {
  if (!forked()) carrier_->post(role_fact::Joined{election});
}

void RoleStore::left(const std::string& election) {
  if (!forked()) carrier_->post(role_fact::Quit{election});
}

Result<Look> RoleStore::look(const std::string& cursor, const Limit& limit) {
  return ask<Look>(role_call::See{cursor}, limit);
}

Result<Committed> RoleStore::open(SessionId id, const Session& session, const Limit& limit) {
  return ask<Committed>(role_call::Open{id, session}, limit);
}

Result<Committed> RoleStore::commit(const tenure::Commit& commit, const Limit& limit) {
  return ask<Committed>(role_call::Write{commit}, limit);
}

Result<bool> RoleStore::end(SessionId id, const std::vector<std::uint64_t>&, std::uint64_t, const Limit& limit) {
  return ask<bool>(role_call::End{id}, limit);
}

/// Nobody keeps ended sessions here.
Result<int> RoleStore::sweep(const Limit&) { return 0; }

std::optional<Error> RoleStore::request_step_down(const std::string&, const StepDown&, const Limit&) {
  return Error{Fault::misconfigured,
               "kafka: requests to step down are not offered for roles; stop the process that leads, or let it leave() "
               "the election"};
}

std::optional<Release> RoleStore::await_change(const std::string& cursor, const Limit& limit) {
  call(role_call::Await{cursor}, limit);
  return std::nullopt;
}

std::optional<Error> RoleStore::accepts(const Timing& timing) {
  auto kept = timing;  // Retry, call and drain are core's alone.
  kept.retry = timing_.retry;
  kept.call = timing_.call;
  kept.drain = timing_.drain;
  if (started_ && kept != timing_)
    return Error{Fault::misconfigured, "kafka: this store is in use with another Timing. Open another store"};
  auto runs = pace(timing);
  if (!runs) return std::move(runs).error();
  timing_ = timing;
  return std::nullopt;
}

bool RoleStore::forked() const { return ::getpid() != made_by_; }

std::optional<RoleAnswer> RoleStore::call(RoleCall what, const Limit& limit) {
  if (forked()) return std::nullopt;  // before any lock: it may have been held when we were forked
  if (!started_) {
    const auto runs = pace(timing_);
    if (!runs) throw std::invalid_argument(runs.error().message);
    carrier_->begin(timing_, *runs);
    started_ = true;
  }
  return carrier_->call(std::move(what), limit);
}

template <class T>
Result<T> RoleStore::ask(RoleCall what, const Limit& limit) {
  auto answer = call(std::move(what), limit);
  if (auto* result = answer ? std::get_if<Result<T>>(&*answer) : nullptr) return std::move(*result);
  // An error of what the call waited for.
  if (auto* other = answer ? std::get_if<Result<Committed>>(&*answer) : nullptr; other && !*other)
    return std::move(*other).error();
  if (forked()) return forked_child("the store of Kafka");
  return Error{Fault::timed_out, limit.stop.stop_requested() ? "the caller ended the call"
                                                             : "the call's limit passed before an answer came"};
}

// ---- opening ----

Presets group_presets(Exclusive exclusive) {
  if (exclusive == Exclusive::yes) return presets();
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  return {.fast = {.term = milliseconds(26500),
                   .renew = seconds(1),
                   .retry = milliseconds(100),
                   .margin = milliseconds(500),
                   .call = seconds(2),
                   .drain = seconds(6)},
          .balanced = {.term = milliseconds(50750),
                       .renew = seconds(2),
                       .retry = milliseconds(200),
                       .margin = milliseconds(750),
                       .call = seconds(2),
                       .drain = seconds(12)},
          .steady = {.term = seconds(83),
                     .renew = seconds(3),
                     .retry = milliseconds(400),
                     .margin = seconds(1),
                     .call = seconds(2),
                     .drain = seconds(20)}};
}

std::shared_ptr<GroupStore> open_group(Options given, int units, Exclusive exclusive) {
  if (units < 1 || units > max_units)
    refuse("units is " + std::to_string(units) + "; 1 to " + std::to_string(max_units) + " are allowed");
  if (given.remote_step_down) refuse("remote_step_down is not offered for roles");
  if (given.topic.empty() && !given.group.empty()) given.topic = given.group + ".roles";
  if (given.create_topic) given.create_topic->partitions = partitions_of(units);
  // So that the new partitions of a topic that grows are dealt out before their units are needed (R15).
  const auto refresh = std::chrono::ceil<std::chrono::milliseconds>(role_topic_pause).count();
  given.properties.try_emplace("topic.metadata.refresh.interval.ms", std::to_string(refresh));
  auto options = completed(std::move(given));
  const auto log = std::make_shared<ClosableLog>(options);
  for (const auto& host : plaintext_hosts(options))
    log->write(Level::warning, unprotected("broker " + host, "Set the property security.protocol to ssl or sasl_ssl"));
  auto observer = std::make_unique<Reader>(options, options.group, log, partitions_of(units));
  return std::make_shared<RoleStore>(RoleCarrier::make(std::move(options), units, exclusive, log, std::move(observer)));
}

OpenedGroup open_group_url(const Opening& opening) {
  int units = default_units;
  auto exclusive = Exclusive::yes;
  auto options = group_options_of(opening, units, exclusive);
  const auto suitable = exclusive == Exclusive::yes ? presets_for(options) : group_presets(exclusive);
  return {.store = open_group(std::move(options), units, exclusive), .presets = suitable};
}

}  // namespace tenure::kafka
