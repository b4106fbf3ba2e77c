// SPDX-License-Identifier: Apache-2.0
// The five verbs, each one question to the seat's serving thread.
#include <tenure/kafka.hpp>

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/wait.hpp>

#include "reaper.hpp"
#include "seat.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<Journal> make_journal(const Options& options) {
  return std::make_shared<Journal>(options.log, Redactor(options.properties), options.group);
}

std::shared_ptr<Client> make_observer(const Options& options, const std::string& group,
                                      const std::shared_ptr<Journal>& journal) {
  try {
    return std::make_shared<Client>(common_properties(options, group), Place{options.brokers, group, options.topic},
                                    journal);
  } catch (const std::runtime_error& e) {
    throw std::invalid_argument(std::string("kafka: ") + e.what());
  }
}

/// Without its caller: a commit that no coordinator took keeps a handle until a session's time is over.
std::shared_ptr<Client> closed_aside(std::shared_ptr<Client> client) {
  auto* const it = client.get();
  auto& reaper = Reaper::instance();  // may throw, which at the end nothing may
  return {it, [client = std::move(client), &reaper](Client*) mutable { reaper.close(std::move(client), [] {}); }};
}

class Seat final : public Backend {
 public:
  explicit Seat(std::shared_ptr<Carrier> carrier) : carrier_(std::move(carrier)) {}
  ~Seat() override {
    if (forked())
      new std::shared_ptr<Carrier>(std::move(carrier_));  // its threads are the parent's
    else
      carrier_->stop();
  }

  std::optional<Error> accepts(const Timing& timing) override {
    auto kept = timing;  // Retry, call and drain are core's alone.
    kept.retry = timing_.retry;
    kept.call = timing_.call;
    kept.drain = timing_.drain;
    if (started_ && kept != timing_)
      return Error{Fault::misconfigured,
                   "kafka: term, renew, margin and clock_rate_error cannot be changed while the seat is in use: the "
                   "group's session was joined by them. Open another seat"};
    auto pace = pace_of(timing, carrier_->options());
    if (!pace) return std::move(pace).error();
    timing_ = timing;
    return std::nullopt;
  }

  std::string election() const override { return carrier_->options().group; }

  Answer acquire(const Limit& limit) override { return ask({.verb = Verb::acquire, .token = {}, .seen = {}}, limit); }
  Answer renew(Token token, const Limit& limit) override {
    return ask({.verb = Verb::renew, .token = token, .seen = {}}, limit);
  }

  std::optional<Error> release(const Limit& limit) override {
    auto result = call({.verb = Verb::release, .token = {}, .seen = {}}, limit);
    if (auto* error = std::get_if<std::optional<Error>>(&result)) return std::move(*error);
    return unanswered(limit);
  }

  Sight observe(const Limit& limit) override {
    auto result = call({.verb = Verb::observe, .token = {}, .seen = {}}, limit);
    if (auto* sight = std::get_if<Sight>(&result)) return std::move(*sight);
    return Unknown{unanswered(limit)};
  }

  void await_change(const Sight& seen, const Limit& limit) override {
    call({.verb = Verb::await_change, .token = {}, .seen = seen}, limit);
  }

 private:
  bool forked() const { return ::getpid() != made_by_; }

  Error unanswered(const Limit& limit) const {
    if (forked())
      return {Fault::misconfigured,
              "kafka: this process was forked from the one that opened the seat, and has no part in its election; open "
              "one of its own"};
    return {Fault::timed_out,
            limit.stop.stop_requested() ? "its caller ended the call" : "the call ended by its limit"};
  }

  Carrier::Result call(fact::Called question, const Limit& limit) {
    if (forked()) return {};  // before any lock: it may have been held when we were forked
    if (!started_) {
      const auto pace = pace_of(timing_, carrier_->options());
      if (!pace) throw std::invalid_argument(pace.error().message);
      carrier_->begin(timing_, *pace);
      started_ = true;
    }
    return carrier_->call(std::move(question), limit);
  }

  Answer ask(fact::Called question, const Limit& limit) {
    auto result = call(std::move(question), limit);
    if (auto* answer = std::get_if<Answer>(&result)) return std::move(*answer);
    return Unknown{unanswered(limit)};
  }

  std::shared_ptr<Carrier> carrier_;
  const pid_t made_by_{::getpid()};
  Timing timing_{presets().balanced};
  bool started_{};
};

/// Commits with no membership: the group of requests has no members.
std::optional<Error> write_request(Client& client, const Commit& request, const Limit& limit) {
  const std::shared_ptr<Waker> waker = boot_clock().make_waker();
  client.on_events(waker);
  if (const auto code = client.commit(1, 0, request)) return client.explained(code, "offset commit");
  while (!limit.passed()) {
    while (const auto event = client.next_event()) {
      if (event->kind == Client::Event::Kind::committed)
        return event->code ? std::optional(client.explained(event->code, "offset commit")) : std::nullopt;
      if (needs_the_user(event->code)) return client.explained(event->code, event->text);
    }
    wait(*waker, limit);
  }
  return Error{Fault::timed_out, "the request was not acknowledged in time; it may be stored all the same"};
}

}  // namespace

Presets presets() {
  return {.fast = {.term = milliseconds(6250),
                   .renew = milliseconds(500),
                   .retry = milliseconds(100),
                   .margin = milliseconds(250),
                   .call = seconds(2),
                   .drain = seconds(6)},
          .balanced = {.term = seconds(13),
                       .renew = seconds(1),
                       .retry = milliseconds(200),
                       .margin = milliseconds(500),
                       .call = seconds(2),
                       .drain = seconds(13)},
          .steady = {.term = seconds(22),
                     .renew = seconds(2),
                     .retry = milliseconds(400),
                     .margin = seconds(1),
                     .call = seconds(2),
                     .drain = seconds(22)}};
}

std::shared_ptr<Backend> open(Options given) {
  auto options = completed(std::move(given));
  const auto journal = make_journal(options);
  for (const auto& host : plaintext_hosts(options))
    journal->write(Level::warning, "broker " + host +
                                       " is spoken to in plain text: anybody on the way can read and "
                                       "forge commits, and so leaders. Set security.protocol to ssl or sasl_ssl");
  auto observer = make_observer(options, options.group, journal);
  return std::make_shared<Seat>(Carrier::make(std::move(options), journal, std::move(observer)));
}

std::optional<Error> request_step_down(const Options& given, const std::string& by, const std::string& why,
                                       const Limit& limit) {
  if (by.size() > max_candidate_bytes || why.size() > 200)
    throw std::invalid_argument("kafka: by may have 100 bytes, why 200; given " + std::to_string(by.size()) + " and " +
                                std::to_string(why.size()));
  const auto options = completed(given);
  const auto journal = make_journal(options);
  const Limit own{boot_clock(), by_boot_clock(limit), limit.stop};
  const auto left = [&] {
    const auto ms = std::chrono::duration_cast<milliseconds>(own.by - boot_clock().now());
    return std::clamp(ms, milliseconds(1), milliseconds(2000));
  };
  const struct Closed {
    Journal& journal;
    ~Closed() { journal.close(); }
  } closed{*journal};
  const auto observer = closed_aside(make_observer(options, options.group, journal));
  bool missing = false;
  if (auto error = observer->check_topic(left(), missing)) return error;
  auto found = observer->with_reason(observer->committed(1, left()));
  if (!found) return std::move(found).error();
  const auto& record = (*found)[0];
  const auto said = record ? decode(record->metadata) : std::nullopt;
  if (!said || said->released) return std::nullopt;
  const auto requests = closed_aside(make_observer(options, requests_group(options.group), journal));
  return write_request(*requests, {record->offset, encode(StepDown{by, why})}, own);
}

}  // namespace tenure::kafka
