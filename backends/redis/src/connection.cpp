// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include <tenure/kit/logging.hpp>
#include <tenure/log.hpp>

#include "handshake.hpp"
#include "options.hpp"

namespace tenure::redis {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// A server checks ten times a second whether a WAIT is over.
constexpr Clock::Duration wait_precision = milliseconds(110);

/// Whether it is a message of a channel.
bool is_message(const Reply& reply) { return reply.list.size() == 3 && reply.list[0].text == "message"; }

}  // namespace

Error Connection::explained(const Reply& reply) const { return redis::explained(reply, options_, wire_->name()); }

/// From here on another server may be the right one, so it is looked for anew.
void Connection::drop() {
  wire_.reset();
  ready_ = subscribed_ = asking_ = false;
  to_.reset();
  ++seed_;
}

/// A question that is over leaves the connection as it is.
Error Connection::lost(Error error) {
  if (error.fault != Fault::timed_out) drop();
  return error;
}

// ---- finding the server ----

std::optional<Error> Connection::connect(CallThread::Attempt& attempt) {
  const auto tries = master_ ? 1 : std::max<std::size_t>(options_.servers.size(), 1);
  std::optional<Error> worst;
  for (std::size_t failed = 0; !ready_;) {
    auto error = connect_once(attempt);
    if (!error) continue;
    drop();
    if (!worst || error->fault != Fault::unreachable) worst = std::move(error);  // the user can mend that
    if (ended_ || ++failed == tries) return worst;
  }
  return std::nullopt;
}

std::optional<Error> Connection::connect_once(CallThread::Attempt& attempt) {
  const bool by_socket = !to_ && !options_.socket.empty();
  at_ = to_         ? *to_
        : master_   ? *master_
        : by_socket ? Address{"127.0.0.1"}  // where a cluster names no host
                    : options_.servers[seed_ % options_.servers.size()];
  wire_.emplace("redis " + (by_socket ? printable(options_.socket) : to_string(at_)), most_);
  if (auto error = begin(attempt, "resolving")) return error;
  if (auto error = by_socket ? wire_->open(options_.socket) : wire_->open(at_)) return error;
  if (auto error = begin(attempt, by_socket ? "connecting" : "TCP")) return error;
  if (auto error = wire_->connect()) return error;
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
  add_auth(steps, *wire_, options_.user, options_.password);
  add_client_name(steps, *wire_, client_);
  if (master_) steps.push_back({{"ROLE"}, [this](const Reply& reply) { return check_role(reply); }});
  if (!master_ && options_.servers.size() > 1)
    steps.push_back({{"INFO", "cluster"}, [this](const Reply& reply) { return check_cluster(reply); }});
  if (use_ == Use::commands && options_.db != 0)
    steps.push_back({{"SELECT", std::to_string(options_.db)}, [this](const Reply& reply) {
                       return reply.is_error() ? std::optional(explained(reply)) : std::nullopt;
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
  if (reply.is_error()) return explained(reply);
  if (!reply.list.empty() && reply.list[0].text == "master") return std::nullopt;
  return wire_->broken("it is not a master, although a Sentinel says so; a fail-over is under way");
}

/// Two servers that know nothing of each other would elect two leaders.
std::optional<Error> Connection::check_cluster(const Reply& reply) const {
  if (reply.is_error()) return explained(reply);
  if (info_field(reply.text, "cluster_enabled") == "1") return std::nullopt;
  return Error{Fault::misconfigured, wire_->name() + " is not a node of a cluster; name one server, or its Sentinels"};
}

/// Records never expire, so only the allkeys-* policies may evict one. That costs its leader the lead, and the
/// election a term. It is no reason to refuse a server that others have set up.
std::optional<Error> Connection::check_memory(const Reply& reply) {
  if (reply.is_error() && code_of(reply.text) != "NOPERM") return explained(reply);
  const auto& info = reply.text;  // where it is forbidden it tells nothing
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
  if (!reply.is_error()) return std::move(reply);
  const auto onward = redirection(reply, at_.host);
  auto error = explained(reply);
  drop();
  if (!onward || !follow) return error;
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
  if (reply.is_error()) return explained(reply);
  if (reply.kind == Reply::Kind::integer && reply.integer >= options_.replicas) return std::nullopt;
  auto error = wire_->broken(std::to_string(reply.integer) + " of " + std::to_string(options_.replicas) +
                             " replicas acknowledged the write in time");
  if (!master_ && options_.servers.size() > 1) drop();  // Another node may know who serves the slot now.
  return error;
}

std::optional<Error> Connection::subscribe(const std::string& channel, const Exchange& exchange) {
  auto answer = wire_->ask({"SUBSCRIBE", channel}, exchange);
  while (answer && is_message(*answer)) answer = wire_->receive(exchange);  // By a SUBSCRIBE whose exchange was over.
  if (answer && answer->kind == Reply::Kind::list) {
    subscribed_ = true;
    return std::nullopt;
  }
  if (!answer) return lost(answer.error());
  auto error = answer->is_error() ? explained(*answer) : wire_->broken("it gave an unexpected answer to SUBSCRIBE");
  drop();
  return error;
}

Result<std::optional<std::string>> Connection::next_message(const Exchange& exchange) {
  const auto come = wire_->receive(exchange);
  if (come) return is_message(*come) ? come->list[2].text : std::string();
  auto error = lost(come.error());
  if (error.fault == Fault::timed_out) return std::nullopt;
  return error;
}

}  // namespace tenure::redis
