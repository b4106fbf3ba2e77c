// SPDX-License-Identifier: Apache-2.0
#include "kafka_backend.hpp"

#include <unistd.h>

#include <stdexcept>
#include <utility>
#include <variant>

#include <tenure/kit/names.hpp>
#include <tenure/kit/store.hpp>

#include "settings.hpp"
#include "step_down.hpp"

namespace tenure::kafka {

KafkaBackend::KafkaBackend(std::shared_ptr<Carrier> carrier)
    : carrier_(std::move(carrier)), made_by_(::getpid()), timing_(presets().balanced) {}

KafkaBackend::~KafkaBackend() {
  if (forked())
    new std::shared_ptr<Carrier>(std::move(carrier_));  // never freed: its threads are the parent's
  else
    carrier_->stop();
}

std::optional<Error> KafkaBackend::accepts(const Timing& timing) {
  auto kept = timing;  // Retry, call and drain are core's alone.
  kept.retry = timing_.retry;
  kept.call = timing_.call;
  kept.drain = timing_.drain;
  if (started_ && kept != timing_)
    return Error{
        Fault::misconfigured,
        "kafka: term, renew, margin and clock_rate_error cannot be changed while the backend is in use, because "
        "it joined the group by them. Open another backend"};
  auto pace = pace_of(timing, carrier_->options());
  if (!pace) return std::move(pace).error();
  timing_ = timing;
  return std::nullopt;
}

std::string KafkaBackend::election() const { return carrier_->options().group; }

Answer KafkaBackend::acquire(const Limit& limit) {
  return ask({.verb = Verb::acquire, .token = {}, .seen = {}}, limit);
}

Answer KafkaBackend::renew(Token token, const Limit& limit) {
  return ask({.verb = Verb::renew, .token = token, .seen = {}}, limit);
}

std::optional<Error> KafkaBackend::release(const Limit& limit) {
  auto result = call({.verb = Verb::release, .token = {}, .seen = {}}, limit);
  if (auto* error = std::get_if<std::optional<Error>>(&result)) return std::move(*error);
  return unanswered(limit);
}

Sight KafkaBackend::observe(const Limit& limit) {
  auto result = call({.verb = Verb::observe, .token = {}, .seen = {}}, limit);
  if (auto* sight = std::get_if<Sight>(&result)) return std::move(*sight);
  return Unknown{unanswered(limit)};
}

void KafkaBackend::await_change(const Sight& seen, const Limit& limit) {
  call({.verb = Verb::await_change, .token = {}, .seen = seen}, limit);
}

std::optional<Error> KafkaBackend::request_step_down(const std::string& by, const std::string& why,
                                                     const Limit& limit) try {
  if (auto error = refused_step_down(by, why)) return error;
  if (forked()) return unanswered(limit);
  return ask_to_step_down(carrier_->options(), {.token = {}, .by = by, .why = why}, limit);
} catch (const std::exception& e) {  // no thread or descriptor more
  return Error{Fault::unreachable, e.what()};
}

bool KafkaBackend::forked() const { return ::getpid() != made_by_; }

Error KafkaBackend::unanswered(const Limit& limit) const {
  if (forked()) return forked_child("the backend of Kafka");
  return {Fault::timed_out,
          limit.stop.stop_requested() ? "the caller ended the call" : "the call's limit passed before an answer came"};
}

Carrier::CallResult KafkaBackend::call(fact::Called what, const Limit& limit) {
  if (forked()) return {};  // before any lock: it may have been held when we were forked
  if (!started_) {
    const auto pace = pace_of(timing_, carrier_->options());
    if (!pace) throw std::invalid_argument(pace.error().message);
    carrier_->begin(timing_, *pace);
    started_ = true;
  }
  return carrier_->call(std::move(what), limit);
}

Answer KafkaBackend::ask(fact::Called what, const Limit& limit) {
  auto result = call(std::move(what), limit);
  if (auto* answer = std::get_if<Answer>(&result)) return std::move(*answer);
  return Unknown{unanswered(limit)};
}

}  // namespace tenure::kafka
