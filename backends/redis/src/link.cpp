// SPDX-License-Identifier: Apache-2.0
// Finds the server that holds the data, and asks it within limits; follows the master, and asks or listens there.
#include "link.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <tenure/kit/jitter.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/log.hpp>

#include "options.hpp"
#include "wire.hpp"

namespace tenure::redis {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// A server checks ten times a second whether a WAIT is over.
constexpr Clock::Duration wait_precision = milliseconds(110);

std::atomic<std::uint64_t> connections{};

/// Whether it is what a channel brings: its "message", or that we "subscribe" to it now.
bool is_pushed(const Reply& reply, const char* kind) { return reply.list.size() == 3 && reply.list[0].text == kind; }

/// The longest pause from a subscription that failed to the next attempt, if anybody still waits.
constexpr Clock::Duration subscribe_again = std::chrono::seconds(1);

constexpr int most_redirections = 4;

/// Requested when either of two others is.
class StoppedBy {
 public:
  StoppedBy(const std::stop_token& a, const std::stop_token& b) : a_(a, Pass{source_}), b_(b, Pass{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Pass {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Pass> a_, b_;
};

}  // namespace

Error Connection::explained(const Reply& reply, std::string_view command) const {
  return redis::explained(reply, login_.password, wire_->name(), command);
}

/// Another server may be the right one now, so it is looked for anew.
void Connection::drop() {
  wire_.reset();
  ready_ = subscribed_ = asking_ = false;
  to_.reset();
}

/// It answers, but does not serve.
void Connection::leave() {
  server_order_.failed(at_);
  address_order_.failed(address_);
  drop();
}

/// A question that is over leaves the connection as it is.
Error Connection::lost(Error error) {
  if (error.fault != Fault::timed_out) drop();
  return error;
}

// ---- finding the server ----

std::optional<Error> Connection::connect(CallThread::Attempt& attempt) {
  worst_.reset();
  login_ = {options_.user, options_.password};
  if (options_.credentials && attempt.step("redis", "asking for credentials"))
    login_ = credentials_by(options_.credentials, Redactor({}));
  for (const auto& server : servers()) {
    at_ = server;
    server_order_.tried(server);
    if (connect_to_server(attempt)) {
      number_ = ++connections;
      return std::nullopt;
    }
    server_order_.failed(server);
    drop();
    if (ended_) break;
  }
  return worst_;
}

/// In the order in which they are to be tried: where a cluster sent us, the master, or the options' servers.
std::vector<Address> Connection::servers() const {
  auto out = master_                    ? std::vector{*master_}
             : !options_.socket.empty() ? std::vector{Address{"127.0.0.1"}}  // where a cluster names no host
                                        : server_order_.of(options_.servers);
  const auto most = out.size();
  if (to_) out.insert(out.begin(), *to_);
  out.resize(most);
  return out;
}

bool Connection::connect_to_server(CallThread::Attempt& attempt) {
  connected_ = false;
  wire_.emplace("redis " + (by_socket() ? printable(options_.socket) : to_string(at_)), most_);
  if (!went_well(begin(attempt, "resolving"))) return false;
  if (by_socket()) return went_well(open_and_introduce(attempt));
  auto found = wire_->resolve(at_);
  if (!found) return went_well(std::move(found).error());
  auto addresses = address_order_.of(*std::move(found));
  addresses.resize(std::min(addresses.size(), most_addresses));
  for (const auto& address : addresses) {
    address_ = address;
    address_order_.tried(address);
    wire_.emplace("redis " + to_string(at_, address), most_);
    connected_ = false;
    if (went_well(open_and_introduce(attempt))) return true;
    address_order_.failed(address);
    if (ended_) break;
  }
  return false;
}

/// Keeps the error that says most: what the user can mend, else what came after we were connected.
bool Connection::went_well(std::optional<Error> error) {
  if (!error) return true;
  const int weight = error->fault != Fault::unreachable ? 2 : connected_ ? 1 : 0;
  if (!worst_ || weight > weight_of_worst_) {
    worst_ = std::move(error);
    weight_of_worst_ = weight;
  }
  return false;
}

bool Connection::by_socket() const { return !to_ && !options_.socket.empty(); }

std::optional<Error> Connection::open_and_introduce(CallThread::Attempt& attempt) {
  if (auto error = by_socket() ? wire_->open(options_.socket) : wire_->open(address_)) return error;
  if (auto error = begin(attempt, by_socket() ? "connecting" : "TCP")) return error;
  if (auto error = wire_->connect()) return error;
  connected_ = true;
  if (auto error = secure(attempt)) return error;
  if (auto error = begin(attempt, "introduction")) return error;
  return shake_hands(attempt);
}

std::optional<Error> Connection::begin(CallThread::Attempt& attempt, const char* step) {
  ended_ = !attempt.step(wire_->name(), step, wire_->descriptor());
  return ended_ ? std::optional(wire_->broken("it is not connected, because the store is closed")) : std::nullopt;
}

std::optional<Error> Connection::secure(CallThread::Attempt& attempt) {
  if (!options_.tls) return std::nullopt;
  if (auto error = begin(attempt, "TLS handshake; a port without TLS leaves it unanswered")) return error;
  return wire_->secure(options_, at_.host);
}

std::optional<Error> Connection::shake_hands(CallThread::Attempt& attempt) {
  std::vector<HandshakeStep> steps;
  add_auth(steps, *wire_, login_.user, login_.password);
  add_client_name(steps, *wire_, client_);
  if (master_) steps.push_back({{"ROLE"}, [this](const Reply& reply) { return check_role(reply); }});
  if (!master_ && options_.servers.size() > 1)
    steps.push_back({{"INFO", "cluster"}, [this](const Reply& reply) { return check_cluster(reply); }});
  if (use_ == Use::commands && options_.db != 0)
    steps.push_back({{"SELECT", std::to_string(options_.db)}, [this](const Reply& reply) {
                       return reply.is_error() ? std::optional(explained(reply, "SELECT")) : std::nullopt;
                     }});
  if (use_ == Use::commands)
    steps.push_back({{"INFO", "memory"}, [this](const Reply& reply) { return check_memory(reply); }});
  const auto asked = boot_clock().now();
  auto error = redis::shake_hands(*wire_, steps);
  attempt.round_trip(boot_clock().now() - asked);
  ready_ = !error;
  if (ready_) wire_->unblock();
  return error;
}

/// A Sentinel may name a server that has just been, or not yet become, the master.
std::optional<Error> Connection::check_role(const Reply& reply) const {
  if (reply.is_error()) return explained(reply, "ROLE");
  if (!reply.list.empty() && reply.list[0].text == "master") return std::nullopt;
  return wire_->broken("it is not a master, although a Sentinel says so; a fail-over is under way");
}

/// Two servers that know nothing of each other would elect two leaders.
std::optional<Error> Connection::check_cluster(const Reply& reply) const {
  if (reply.is_error()) return explained(reply, "INFO");
  if (info_field(reply.text, "cluster_enabled") == "1") return std::nullopt;
  return Error{Fault::misconfigured, wire_->name() + " is not a node of a cluster; name one server, or its Sentinels"};
}

/// Records never expire, so only the allkeys-* policies may evict one. That costs its leader the lead, and the
/// election a term. It is no reason to refuse a server that others have set up.
std::optional<Error> Connection::check_memory(const Reply& reply) {
  if (reply.is_error()) return refused_all(reply, wire_->name());
  const auto& info = reply.text;
  const auto policy = std::string(info_field(info, "maxmemory_policy"));
  const bool evicts = policy.starts_with("allkeys") && info_field(info, "maxmemory") != "0";
  if (evicts && policy != policy_)
    warning_ = wire_->name() + " may evict records: its maxmemory-policy is " + printable(policy) +
               "; set it to noeviction, or to one of volatile-*";
  policy_ = evicts ? policy : std::string();
  return std::nullopt;
}

bool Connection::stands() {
  if (ready_ && stale()) drop();
  return ready_;
}

bool Connection::stale() const {
  if (use_ == Use::notices || wire_->owed() > 0) return false;
  pollfd readable{wire_->descriptor(), POLLIN, 0};
  return ::poll(&readable, 1, 0) != 0;  // nothing was asked, so that there is no answer but the stream's end
}

bool Connection::settle(Exchange& exchange) {
  while (ready_ && wire_->owed() > 0) {
    const auto late = wire_->receive(exchange);
    if (!late && lost(late.error()).fault == Fault::timed_out) return false;
  }
  return true;
}

// ---- asking it ----

Result<std::optional<Reply>> Connection::run(const Call& call, bool follow, const Exchange& exchange) {
  auto answer = send(call, exchange);
  if (!answer) return lost(std::move(answer).error());
  auto& reply = *answer;
  if (!reply.is_error()) {
    server_order_.served(at_);
    address_order_.served(address_);
    return std::move(reply);
  }
  const auto onward = redirection(reply, at_.host);
  auto error = explained(reply, "EVALSHA");
  if (!onward || !follow) {
    leave();
    return error;
  }
  drop();
  to_ = onward->to;
  asking_ = onward->ask;
  return std::nullopt;
}

Result<Reply> Connection::send(const Call& call, const Exchange& exchange) {
  Command command{"EVALSHA", std::string(call.script->sha1), std::to_string(call.keys.size())};
  command.insert(command.end(), call.keys.begin(), call.keys.end());
  command.insert(command.end(), call.arguments.begin(), call.arguments.end());
  const auto ask = [&]() -> Result<Reply> {
    if (asking_)
      if (auto asked = wire_->ask({"ASKING"}, exchange); !asked) return asked;
    return wire_->ask(command, exchange);
  };
  auto answer = ask();
  if (!answer || !answer->is_error() || code_of(answer->text) != "NOSCRIPT") return answer;
  command[0] = "EVAL";
  command[1] = call.script->text;
  return ask();
}

std::optional<Error> Connection::await_replicas(Clock::Time until, const Exchange& exchange) {
  const auto left = until - boot_clock().now();
  const auto patience =
      std::max(duration_cast<milliseconds>(std::max(left - wait_precision, left / 2)), milliseconds(1));
  const Command wait{"WAIT", std::to_string(options_.replicas), std::to_string(patience.count())};
  const auto answer = wire_->ask(wait, exchange);
  if (!answer) return lost(answer.error());
  const auto& reply = *answer;
  if (reply.is_error()) return explained(reply, "WAIT");
  if (reply.kind == Reply::Kind::integer && reply.integer >= options_.replicas) return std::nullopt;
  auto error = wire_->broken(std::to_string(reply.integer) + " of " + std::to_string(options_.replicas) +
                             " replicas acknowledged the write in time");
  if (!master_ && options_.servers.size() > 1) leave();  // Another node may know who serves the slot now.
  return error;
}

std::optional<Error> Connection::subscribe(const std::string& channel, const Exchange& exchange) {
  auto answer = wire_->ask({"SUBSCRIBE", channel}, exchange);
  while (answer && is_pushed(*answer, "message"))
    answer = wire_->receive(exchange);  // By a SUBSCRIBE whose exchange was over.
  if (answer && is_pushed(*answer, "subscribe")) {
    subscribed_ = true;
    return std::nullopt;
  }
  if (!answer) return lost(answer.error());
  auto error =
      answer->is_error() ? explained(*answer, "SUBSCRIBE") : wire_->broken("it gave an unexpected answer to SUBSCRIBE");
  leave();
  return error;
}

Result<std::optional<std::string>> Connection::next_message(const Exchange& exchange) {
  const auto come = wire_->receive(exchange);
  if (come) return is_pushed(*come, "message") ? come->list[2].text : std::string();
  auto error = lost(come.error());
  if (error.fault == Fault::timed_out) return std::nullopt;
  return error;
}

// ---- the way there ----

Warn warnings(Log log, std::string kind, std::string name) {
  return [log = std::move(log), kind = std::move(kind), name = std::move(name)](const std::string& message) {
    tell(log, Level::warning, message, {{kind, name}, {"store", "redis"}});
  };
}

Link::Link(Connection::Purpose purpose, std::shared_ptr<Sentinels> sentinels, Warn warn, Made made)
    : purpose_(std::move(purpose)), sentinels_(std::move(sentinels)), warn_(std::move(warn)) {
  if (!sentinels_ && made == Made::now) kept_.emplace(purpose_, std::nullopt);
}

// ---- which server ----

Result<Link::Target> Link::find_target(Clock::Time since, const Limit& limit) {
  if (!sentinels_) return Target{};
  auto named = sentinels_->master(since, limit);
  if (const auto warning = sentinels_->take_warning()) warn_(*warning);
  const auto known = !named && since == Clock::Time::min() ? sentinels_->known() : std::nullopt;
  if (!named && !known) return named.error();
  const auto& [master, moved] = known ? *known : *named;
  return Target{master, moved};
}

std::optional<Error> Link::find_master(Clock::Time since, const Limit& limit) {
  const auto found = find_target(since, limit);
  return found ? std::nullopt : std::optional(found.error());
}

Result<Link::ThreadedConnection*> Link::connection_to(const Target& target) try {
  if (!kept_ || kept_->master != target.master) kept_.emplace(purpose_, target.master);
  return &*kept_;
} catch (const std::system_error& e) {
  return no_connection_left(e);
}

// ---- asking it ----

Result<Reply> Link::run(const Call& call, const Asked& asked, const Limit& limit) {
  const auto found = find_target(asked.named_since, limit);
  if (!found) return found.error();
  const auto& target = *found;
  const auto made = connection_to(target);
  if (!made) return made.error();
  auto& there = **made;
  const StoppedBy either(limit.stop, target.moved);
  const Limit until_moved{limit.clock, limit.by, either.token()};
  for (int redirections = 0;; ++redirections) {
    const auto ask = [&](const Exchange& exchange) -> Result<std::optional<Reply>> {
      auto answer = there.connection->run(call, redirections < most_redirections, exchange);
      if (asked.replicas > 0 && answer && *answer && !(*answer)->list.empty() && (*answer)->list[0].integer == 1)
        if (auto error = there.connection->await_replicas(by_boot_clock(limit), exchange)) return *error;
      return answer;
    };
    auto answer = there.thread.exchange(ask, until_moved);
    if (target.moved.stop_requested())
      return Error{Fault::unreachable, "the Sentinels name another master than " + to_string(*target.master) + " now"};
    if (!answer && sentinels_) sentinels_->doubt();
    if (!answer && answer.error().fault == Fault::timed_out) return answer.error();  // it may still connect
    if (const auto warning = there.connection->take_warning()) warn_(*warning);
    if (!answer) return answer.error();
    if (auto& reply = *answer) return std::move(*reply);
  }
}

// ---- listening to it ----

std::optional<std::string> Link::await_message(const std::string& channel,
                                               const std::function<bool(const std::string&)>& matters, Link& rests,
                                               const Limit& limit) {
  while (!limit.passed()) {
    const auto heard = listen(channel, matters, limit);
    if (heard) return *heard;
    const auto& error = heard.error();
    if (const auto news = repeats_.told(limit.clock.now(), error))
      warn_("this candidate cannot subscribe, so it will notice a release late: " + news->message);
    const bool passes = error.fault == Fault::unreachable || error.fault == Fault::timed_out;
    rests.rest({limit.clock, passes ? std::min(limit.by, limit.clock.now() + jittered(subscribe_again)) : limit.by,
                limit.stop});
  }
  return std::nullopt;
}

/// Until there is news or the limit; an error if it cannot listen.
Result<std::optional<std::string>> Link::listen(const std::string& channel,
                                                const std::function<bool(const std::string&)>& matters,
                                                const Limit& limit) {
  const auto found = find_target(Clock::Time::min(), limit);
  if (!found) return found.error();
  const auto& target = *found;
  const auto made = connection_to(target);
  if (!made) return made.error();
  auto& there = **made;
  const auto wait = [&](const Exchange& exchange) -> Result<std::optional<std::string>> {
    const auto& connection = there.connection;
    if (!connection->subscribed()) {
      if (auto error = connection->subscribe(channel, exchange)) return *error;
      matters({});
      return std::nullopt;
    }
    for (;;) {
      auto message = connection->next_message(exchange);
      if (!message || !*message) return std::nullopt;  // the subscription broke, or the limit passed
      if (matters(**message)) return std::move(*message);
    }
  };
  const StoppedBy either(limit.stop, target.moved);
  auto heard = there.thread.exchange(wait, {limit.clock, limit.by, either.token()});
  if (limit.passed() || target.moved.stop_requested()) return std::nullopt;
  return heard;
}

void Link::rest(const Limit& limit) {
  if (sentinels_) return sentinels_->wait_out(limit);
  if (kept_) return kept_->thread.wait_out(limit);
  wait_out(limit);
}

}  // namespace tenure::redis
