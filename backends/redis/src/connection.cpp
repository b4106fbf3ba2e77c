// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

#include <tenure/log.hpp>

#include "options.hpp"
#include "tls.hpp"

namespace tenure::redis {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t most_reply_bytes = 256 << 10;  // a record has less than 1 KiB, INFO some 10
constexpr std::size_t most_elements = 1024;
constexpr Clock::Duration wait_precision = milliseconds(110);  // servers look ten times a second whether a WAIT is over

decltype(redisReplyObjectFunctions::createArray) create_any_array;  ///< hiredis' own.

/// What a header announces is allocated before any of it has come.
void limit_elements(redisReader& reader) {
  static auto functions = [&reader] {
    auto limited = *reader.fn;
    create_any_array = limited.createArray;
    limited.createArray = [](const redisReadTask* task, auto n) -> void* {  // an int, and from 1.0 on a size_t
      return static_cast<std::size_t>(n) > most_elements ? nullptr : create_any_array(task, n);
    };
    return limited;
  }();
  reader.fn = &functions;
}

Reply value_of(const redisReply& raw) {
  switch (raw.type) {
    case REDIS_REPLY_INTEGER: return {.kind = Reply::Kind::integer, .integer = raw.integer};
    case REDIS_REPLY_ERROR: return {.kind = Reply::Kind::error, .text = {raw.str, raw.len}};
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: return {.kind = Reply::Kind::text, .text = {raw.str, raw.len}};
    case REDIS_REPLY_ARRAY: {
      Reply out{.kind = Reply::Kind::list};
      for (std::size_t i = 0; i < raw.elements; ++i)
        out.list.push_back(raw.element[i] ? value_of(*raw.element[i]) : Reply{});
      return out;
    }
    default: return {};
  }
}

/// The value of "name:value\r\n" in what INFO tells.
std::string_view told(std::string_view info, std::string_view name) {
  const auto line = "\n" + std::string(name) + ":";
  const auto at = info.find(line);
  if (at == info.npos) return {};
  const auto begin = at + line.size();
  return info.substr(begin, info.find_first_of("\r\n", begin) - begin);
}

}  // namespace

void CloseContext::operator()(redisContext* context) const { redisFree(context); }

std::string Connection::where() const {
  if (!to_ && !options_.socket.empty()) return "redis " + printable(options_.socket);
  return (at_sentinel_ ? "Sentinel " : "redis ") + to_string(at_);
}

Error Connection::broken(const std::string& what) const {
  return {Fault::unreachable, where() + ": " + printable(what)};
}

Error Connection::refused(const Reply& reply) const {
  const auto repeats = [&](const std::string& secret) {
    return !secret.empty() && reply.text.find(secret) != reply.text.npos;
  };
  return refusal(reply.text, where(), !repeats(options_.password) && !repeats(options_.sentinel_password));
}

/// From here on another server may be the right one, so it is looked for anew.
void Connection::drop() {
  context_.reset();
  received_ = 0;
  at_sentinel_ = greeted_ = subscribed_ = asking_ = false;
  to_.reset();
  ++seed_;
}

// ---- finding the server ----

std::optional<Error> Connection::connect(CallThread::Attempt& attempt) {
  const auto tries = std::max<std::size_t>(options_.servers.size(), 1) + (options_.master.empty() ? 0 : 1);
  std::optional<Error> told;
  for (std::size_t failed = 0; !greeted_;) {
    aim();
    attempt.step(where(), "resolving, TCP");
    auto error = connect(attempt.patience());
    if (!error && !attempt.step(where(), options_.tls ? "TLS, introduction" : "introduction", context_->fd)) {
      drop();
      return broken("ended");
    }
    if (!error) error = at_sentinel_ ? ask_sentinel() : greet();
    if (!error) continue;
    drop();
    if (!told || error->fault != Fault::unreachable) told = std::move(error);  // what somebody can act on
    if (++failed == tries) return told;
  }
  return std::nullopt;
}

void Connection::aim() {
  at_sentinel_ = !options_.master.empty() && !to_;
  if (to_)
    at_ = *to_;
  else if (!options_.socket.empty())
    at_.host = "127.0.0.1";  // where a cluster names no host
  else
    at_ = options_.servers[seed_ % options_.servers.size()];
}

std::optional<Error> Connection::connect(Clock::Duration patience) {
  const auto us = duration_cast<microseconds>(patience).count();
  const timeval timeout{static_cast<decltype(timeval::tv_sec)>(us / 1'000'000),
                        static_cast<decltype(timeval::tv_usec)>(us % 1'000'000)};
  if (!to_ && !options_.socket.empty()) {
    context_.reset(redisConnectUnixWithTimeout(options_.socket.c_str(), timeout));
  } else {
    context_.reset(redisConnectWithTimeout(at_.host.c_str(), at_.port, timeout));
  }
  if (!context_) return broken("out of memory");
  if (context_->err != 0) return broken(context_->errstr);
  ::fcntl(context_->fd, F_SETFD, FD_CLOEXEC);
  if (context_->connection_type == REDIS_CONN_TCP) redisEnableKeepAlive(context_.get());
  limit_elements(*context_->reader);
  return std::nullopt;
}

std::optional<Error> Connection::ask_sentinel() {
  if (auto error = secure(*context_, options_, at_.host)) return broken(*error);
  if (auto error = log_in(options_.sentinel_user, options_.sentinel_password)) return error;
  const auto answer = ask({"SENTINEL", "get-master-addr-by-name", options_.master});
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  const auto& reply = std::get<Reply>(answer);
  if (reply.is_error()) return refused(reply);
  if (reply.kind == Reply::Kind::nil)
    return Error{Fault::misconfigured,
                 where() + " knows no master named \"" + printable(options_.master) + "\"; set the name it monitors"};
  const auto port = reply.list.size() == 2 ? port_of(reply.list[1].text) : std::nullopt;
  if (!port) return broken("names no address for the master");
  const Address master{reply.list[0].text, *port};
  drop();
  to_ = master;
  return std::nullopt;
}

std::optional<Error> Connection::greet() {
  if (auto error = secure(*context_, options_, at_.host)) return broken(*error);
  if (auto error = log_in(options_.user, options_.password)) return error;
  if (!options_.master.empty())
    if (auto error = check_role()) return error;
  if (options_.master.empty() && options_.servers.size() > 1)
    if (auto error = check_cluster()) return error;
  if (use_ == Use::commands) {
    if (options_.db != 0) {
      const auto answer = ask({"SELECT", std::to_string(options_.db)});
      if (const auto* error = std::get_if<Error>(&answer)) return *error;
      if (std::get<Reply>(answer).is_error()) return refused(std::get<Reply>(answer));
    }
    if (auto error = check_memory()) return error;
  }
  greeted_ = true;
  return std::nullopt;
}

std::optional<Error> Connection::log_in(const std::string& user, const std::string& password) {
  if (password.empty()) return std::nullopt;
  const auto answer = ask(user.empty() ? Command{"AUTH", password} : Command{"AUTH", user, password});
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  const auto& reply = std::get<Reply>(answer);
  if (reply.is_error()) return refusal(reply.text, where(), false);
  return std::nullopt;
}

/// A Sentinel may name a server that has just been, or not yet become, the master.
std::optional<Error> Connection::check_role() {
  const auto answer = ask({"ROLE"});
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  const auto& reply = std::get<Reply>(answer);
  if (reply.is_error()) return refused(reply);
  if (reply.list.empty() || reply.list[0].text != "master")
    return broken("is no master, although a Sentinel says so; a fail-over is under way");
  return std::nullopt;
}

/// Two servers that know nothing of each other would elect two leaders.
std::optional<Error> Connection::check_cluster() {
  const auto answer = ask({"INFO", "cluster"});
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  const auto& reply = std::get<Reply>(answer);
  if (reply.is_error()) return refused(reply);
  if (told(reply.text, "cluster_enabled") != "1")
    return Error{Fault::misconfigured, where() + " is no node of a cluster; name one server, or its Sentinels"};
  return std::nullopt;
}

/// Records never expire, so that only the allkeys-* policies may evict one. That costs its leader the lead, and the
/// election a term: no reason to refuse a server that others have set up.
std::optional<Error> Connection::check_memory() {
  const auto answer = ask({"INFO", "memory"});
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  const auto& reply = std::get<Reply>(answer);
  if (reply.is_error() && code_of(reply.text) != "NOPERM") return refused(reply);
  const auto& info = reply.text;  // where it is forbidden it tells nothing
  const auto policy = std::string(told(info, "maxmemory_policy"));
  const bool evicts = policy.starts_with("allkeys") && told(info, "maxmemory") != "0";
  if (evicts && policy != policy_)
    warning_ = where() + " may evict records: its maxmemory-policy is " + printable(policy) +
               "; set it to noeviction, or to one of volatile-*";
  policy_ = evicts ? policy : std::string();
  return std::nullopt;
}

bool Connection::stands() {
  if (context_ && greeted_ && stale()) drop();
  return greeted_;
}

bool Connection::stale() const {
  if (use_ == Use::notices) return false;
  pollfd readable{context_->fd, POLLIN, 0};
  return ::poll(&readable, 1, 0) != 0;  // nothing was asked, so that there is no answer but the stream's end
}

// ---- asking it ----

Result<std::optional<Reply>> Connection::run(const Script& script, const std::string& key,
                                             const std::vector<std::string>& arguments, bool follow) {
  auto answer = call(script, key, arguments);
  if (auto* error = std::get_if<Error>(&answer)) {
    drop();
    return std::move(*error);
  }
  auto& reply = std::get<Reply>(answer);
  if (!reply.is_error()) return std::move(reply);
  const auto onward = redirection(reply, at_.host);
  auto error = refused(reply);
  drop();
  if (!onward || !follow) return error;
  to_ = onward->to;
  asking_ = onward->ask;
  return std::nullopt;
}

Result<Reply> Connection::call(const Script& script, const std::string& key,
                               const std::vector<std::string>& arguments) {
  Command command{"EVALSHA", std::string(script.sha1), "1", key};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto send = [&]() -> Result<Reply> {
    if (asking_)
      if (auto asked = ask({"ASKING"}); std::holds_alternative<Error>(asked)) return asked;
    return ask(command);
  };
  auto answer = send();
  const auto* reply = std::get_if<Reply>(&answer);
  if (!reply || !reply->is_error() || code_of(reply->text) != "NOSCRIPT") return answer;
  command[0] = "EVAL";
  command[1] = script.text;
  return send();
}

std::optional<Error> Connection::await_replicas(Clock::Time until) {
  const auto left = until - boot_clock().now();
  const auto patience =
      std::max(duration_cast<milliseconds>(std::max(left - wait_precision, left / 2)), milliseconds(1));
  const auto answer = ask({"WAIT", std::to_string(options_.replicas), std::to_string(patience.count())});
  if (const auto* error = std::get_if<Error>(&answer)) {
    drop();
    return *error;
  }
  const auto& reply = std::get<Reply>(answer);
  if (reply.is_error()) return refused(reply);
  if (reply.kind == Reply::Kind::integer && reply.integer >= options_.replicas) return std::nullopt;
  return broken(std::to_string(reply.integer) + " of " + std::to_string(options_.replicas) +
                " replicas acknowledged the write in time");
}

std::optional<Error> Connection::subscribe(const std::string& channel) {
  const auto answer = ask({"SUBSCRIBE", channel});
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply && reply->kind == Reply::Kind::list) {
    subscribed_ = true;
    return std::nullopt;
  }
  auto error = !reply              ? std::get<Error>(answer)
               : reply->is_error() ? refused(*reply)
                                   : broken("an unexpected answer to SUBSCRIBE");
  drop();
  return error;
}

Result<std::optional<std::string>> Connection::next_message(CallThread::Socket& socket) {
  for (;;) {
    auto come = buffered();
    auto* error = std::get_if<Error>(&come);
    if (error == nullptr) {
      if (auto& reply = std::get<1>(come)) return reply->list.size() == 3 ? reply->list[2].text : std::string();
      if (!socket.wait()) return std::nullopt;
    }
    auto trouble = error ? std::optional(*error) : fill();
    if (!trouble) continue;
    drop();
    return *trouble;
  }
}

Result<Reply> Connection::ask(const Command& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const auto& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), words.data(), sizes.data()) != REDIS_OK)
    return broken("out of memory");
  for (int done = 0; done == 0;)
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return broken(context_->errstr);
  return receive();
}

Result<Reply> Connection::receive() {
  for (;;) {
    auto come = buffered();
    if (const auto* error = std::get_if<Error>(&come)) return *error;
    if (auto& reply = std::get<1>(come)) return std::move(*reply);
    if (auto error = fill()) return *error;
  }
}

/// A reply that has come whole.
Result<std::optional<Reply>> Connection::buffered() {
  void* raw = nullptr;
  if (redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK) return broken(context_->errstr);
  if (raw == nullptr) return std::nullopt;
  const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(raw), freeReplyObject);
  received_ = 0;
  return value_of(*reply);
}

std::optional<Error> Connection::fill() {
  const auto before = context_->reader->len;
  if (redisBufferRead(context_.get()) != REDIS_OK) return broken(context_->errstr);
  received_ += context_->reader->len - before;
  if (received_ > most_reply_bytes)
    return broken("a reply of more than " + std::to_string(most_reply_bytes / 1024) + " KiB, where a record has one");
  return std::nullopt;
}

}  // namespace tenure::redis
