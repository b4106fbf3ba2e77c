// SPDX-License-Identifier: Apache-2.0
// Carries each verb to the serving thread, and waits for its answer.
#include "kafka_backend.hpp"

#include <exception>
#include <utility>
#include <variant>

#include <tenure/kit/store.hpp>

#include "step_down.hpp"

namespace tenure::kafka {

Answer KafkaBackend::acquire(const Limit& limit) {
  return ask({.verb = Verb::acquire, .token = {}, .seen = {}}, limit);
}

Answer KafkaBackend::renew(Token token, const Limit& limit) {
  return ask({.verb = Verb::renew, .token = token, .seen = {}}, limit);
}

std::optional<Error> KafkaBackend::release(const Limit& limit) {
  auto result = threads_.call(fact::Called{.verb = Verb::release, .token = {}, .seen = {}}, limit);
  if (auto* error = std::get_if<std::optional<Error>>(&result)) return std::move(*error);
  return threads_.unanswered(limit);
}

Sight KafkaBackend::observe(const Limit& limit) {
  auto result = threads_.call(fact::Called{.verb = Verb::observe, .token = {}, .seen = {}}, limit);
  if (auto* sight = std::get_if<Sight>(&result)) return std::move(*sight);
  return Unknown{threads_.unanswered(limit)};
}

void KafkaBackend::await_change(const Sight& seen, const Limit& limit) {
  threads_.call(fact::Called{.verb = Verb::await_change, .token = {}, .seen = seen}, limit);
}

std::optional<Error> KafkaBackend::request_step_down(const std::string& by, const std::string& why,
                                                     const Limit& limit) try {
  if (auto error = refused_step_down(by, why)) return error;
  if (threads_.forked()) return threads_.unanswered(limit);
  return ask_to_step_down(threads_->options(), {.token = {}, .by = by, .why = why}, limit);
} catch (const std::exception& e) {  // no thread or descriptor more
  return Error{Fault::unreachable, e.what()};
}

Answer KafkaBackend::ask(fact::Called what, const Limit& limit) {
  auto result = threads_.call(std::move(what), limit);
  if (auto* answer = std::get_if<Answer>(&result)) return std::move(*answer);
  return Unknown{threads_.unanswered(limit)};
}

}  // namespace tenure::kafka
