// SPDX-License-Identifier: Apache-2.0
// Drives hiredis on one socket, with limits of our own.
#include "wire.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#ifdef TENURE_REDIS_TLS
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include <tenure/kit/logging.hpp>
#include <tenure/log.hpp>

namespace tenure::redis {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

timeval timeval_of(Clock::Duration time) {
  const auto us = duration_cast<microseconds>(time).count();
  return {static_cast<decltype(timeval::tv_sec)>(us / 1'000'000),
          static_cast<decltype(timeval::tv_usec)>(us % 1'000'000)};
}

/// Waits until the socket is connected. Returns what errno says if it is not, else 0.
int await_connection(int descriptor, std::optional<Clock::Duration> patience) {
  pollfd connects{descriptor, POLLOUT, 0};
  const auto ms = patience ? std::chrono::ceil<std::chrono::milliseconds>(*patience).count() : -1;
  const int ready = ::poll(&connects, 1, static_cast<int>(ms));
  if (ready <= 0) return ready == 0 ? ETIMEDOUT : errno;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// As hiredis sets up a connection that it waited for. What it did not wait for, it leaves to us from 1.0 on.
void set_up(redisContext& connected) {
  ::fcntl(connected.fd, F_SETFL, ::fcntl(connected.fd, F_GETFL) & ~O_NONBLOCK);
  connected.flags |= REDIS_BLOCK;
  if (connected.connection_type != REDIS_CONN_TCP) return;
  const int on = 1;
  ::setsockopt(connected.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  redisEnableKeepAlive(&connected);
}

decltype(redisReplyObjectFunctions::createArray) create_any_array;  ///< hiredis' own.

/// No text of ours is nearly as long. hiredis holds as much three times for a moment.
constexpr std::size_t most_bytes_of_text = 1 << 20;

/// What a header announces is allocated before any of it has come. One list may have many others in it, so that their
/// elements count together.
void limit_elements(redisReader& reader, std::size_t& left) {
  static auto functions = [&reader] {
    auto limited = *reader.fn;
    create_any_array = limited.createArray;
    limited.createArray = [](const redisReadTask* task, auto n) -> void* {  // an int, and from 1.0 on a size_t
      auto& allowed = *static_cast<std::size_t*>(task->privdata);
      if (static_cast<std::size_t>(n) > allowed) return nullptr;
      allowed -= static_cast<std::size_t>(n);
      return create_any_array(task, n);
    };
    return limited;
  }();
  reader.fn = &functions;
  reader.privdata = &left;
}

/// It frees each element of a list at once, so that a large one is not held twice.
Reply value_of(redisReply& raw) {
  switch (raw.type) {
    case REDIS_REPLY_INTEGER: return {.kind = Reply::Kind::integer, .integer = raw.integer};
    case REDIS_REPLY_ERROR: return {.kind = Reply::Kind::error, .text = {raw.str, raw.len}};
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: return {.kind = Reply::Kind::text, .text = {raw.str, raw.len}};
    case REDIS_REPLY_ARRAY: {
      Reply out{.kind = Reply::Kind::list};
      out.list.reserve(raw.elements);
      for (std::size_t i = 0; i < raw.elements; ++i) {
        out.list.push_back(raw.element[i] ? value_of(*raw.element[i]) : Reply{});
        freeReplyObject(std::exchange(raw.element[i], nullptr));
      }
      return out;
    }
    default: return {};
  }
}

// ---- TLS ----

#ifndef TENURE_REDIS_TLS

std::optional<std::string> secured(redisContext&, const Options&, const std::string&) {
  return "this build has no TLS";
}

#else

std::string reason() {
  const auto code = ERR_get_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text ? text : "no reason given";
}

/// Trusts ca_file, or the system's authorities.
bool trust(SSL_CTX* settings, const std::string& ca_file) {
  return (ca_file.empty() ? SSL_CTX_set_default_verify_paths(settings)
                          : SSL_CTX_load_verify_locations(settings, ca_file.c_str(), nullptr)) == 1;
}

/// Expects an address if `host` is one, else a name: certificates tell the two apart.
bool expect(SSL* ssl, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1) return true;
  return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

/// Shakes hands, and verifies chain and host name. Returns what is wrong, if anything is.
std::optional<std::string> secured(redisContext& context, const Options& options, const std::string& host) {
  ERR_clear_error();
  const auto settings = owned<SSL_CTX_free>(SSL_CTX_new(TLS_client_method()));
  if (!settings || SSL_CTX_set_min_proto_version(settings.get(), TLS1_2_VERSION) != 1)
    return "TLS cannot be set up: " + reason();
  if (!trust(settings.get(), options.ca_file)) return "the authorities in ca_file cannot be read: " + reason();
  SSL_CTX_set_verify(settings.get(), SSL_VERIFY_PEER, nullptr);
  SSL* const ssl = SSL_new(settings.get());
  if (ssl == nullptr || !expect(ssl, host)) {
    SSL_free(ssl);
    return "TLS cannot be set up: " + reason();
  }
  if (redisInitiateSSL(&context, ssl) == REDIS_OK) return std::nullopt;  // owns ssl from here on, also if it failed
  return "TLS was refused: " + std::string(context.errstr);
}

#endif

}  // namespace

Error Wire::broken(const std::string& what) const { return {Fault::unreachable, name_ + ": " + printable(what)}; }

/// The same is said if there is no memory for the reply.
Error Wire::too_much(const std::string& of_what) const {
  return broken("a reply of more than " + of_what + ", " + most_.advice);
}

/// hiredis could do it by itself, but keeps the first address that begins to connect.
Result<std::vector<Address>> Wire::resolve(const Address& to) const {
  addrinfo hints{}, *raw = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int failed = ::getaddrinfo(to.host.c_str(), nullptr, &hints, &raw)) return broken(::gai_strerror(failed));
  const auto found = owned<::freeaddrinfo>(raw);
  std::vector<Address> out;
  for (const auto* one = found.get(); one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      out.push_back({text, to.port});
  }
  if (out.empty()) return broken("its name has no address");
  return out;
}

std::optional<Error> Wire::open(const Address& to) { return opened(redisConnectNonBlock(to.host.c_str(), to.port)); }

std::optional<Error> Wire::open(const std::string& socket) { return opened(redisConnectUnixNonBlock(socket.c_str())); }

/// hiredis could wait by itself. But it shows its socket only afterwards: a program that another thread starts
/// meanwhile would inherit it, and nobody could end the wait.
std::optional<Error> Wire::opened(redisContext* context) {
  context_.reset(context);
  received_ = 0;
  if (!context_) return broken("out of memory");
  if (context_->err != 0) return broken(context_->errstr);
  ::fcntl(context_->fd, F_SETFD, FD_CLOEXEC);
  return std::nullopt;
}

std::optional<Error> Wire::connect(std::optional<Clock::Duration> patience) {
  if (const int error = await_connection(context_->fd, patience)) return broken(std::generic_category().message(error));
  set_up(*context_);
  elements_left_ = most_.elements;
  limit_elements(*context_->reader, elements_left_);
  return std::nullopt;
}

std::optional<Error> Wire::secure(const Options& options, const std::string& host) {
  const auto error = options.tls ? secured(*context_, options, host) : std::nullopt;
  return error ? std::optional(broken(*error)) : std::nullopt;
}

void Wire::set_patience(Clock::Duration patience) { redisSetTimeout(context_.get(), timeval_of(patience)); }

int Wire::descriptor() const { return context_ ? context_->fd : -1; }

std::optional<Error> Wire::append(const Command& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const auto& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), words.data(), sizes.data()) != REDIS_OK)
    return broken("out of memory");
  ++owed_;
  return std::nullopt;
}

std::optional<Error> Wire::send(const std::vector<Command>& commands) {
  for (const auto& command : commands)
    if (auto error = append(command)) return error;
  for (int done = 0; done == 0;)
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return broken(context_->errstr);
  return std::nullopt;
}

Result<Reply> Wire::receive() {
  for (;;) {
    auto come = next();
    if (!come) return come.error();
    if (auto& reply = *come) return std::move(*reply);
    if (auto error = fill()) return *error;
  }
}

void Wire::unblock() {
  ::fcntl(context_->fd, F_SETFL, ::fcntl(context_->fd, F_GETFL) | O_NONBLOCK);
  context_->flags &= ~REDIS_BLOCK;
}

Result<Reply> Wire::ask(const Command& command, const Exchange& exchange) {
  if (auto error = append(command)) return *error;
  return receive(exchange);
}

Result<Reply> Wire::receive(const Exchange& exchange) {
  while (!exchange.over()) {
    int sent = 0;
    if (redisBufferWrite(context_.get(), &sent) != REDIS_OK) return broken(context_->errstr);
    auto come = next();
    if (!come) return come.error();
    if (auto& reply = *come) return std::move(*reply);
    const auto before = received_;
    if (auto error = fill()) return *error;
    if (received_ == before) exchange.wait(sent != 0 ? POLLIN : POLLIN | POLLOUT);
  }
  return exchange.no_answer();
}

Result<std::optional<Reply>> Wire::next() {
  void* raw = nullptr;
  if (redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK)
    return context_->err == REDIS_ERR_OOM ? too_much(std::to_string(most_.elements) + " elements")
                                          : broken(context_->errstr);
  if (raw == nullptr) return std::nullopt;
  const auto reply = owned<freeReplyObject>(static_cast<redisReply*>(raw));
  received_ = 0;
  elements_left_ = most_.elements;
  if (owed_ > 0) --owed_;  // Else it was pushed.
  return value_of(*reply);
}

std::optional<Error> Wire::fill() {
  const auto before = context_->reader->len;
  if (redisBufferRead(context_.get()) != REDIS_OK)
    return broken(errno == EAGAIN ? "no answer in time" : context_->errstr);
  received_ += context_->reader->len - before;
  if (received_ > most_.bytes) return too_much(std::to_string(most_.bytes / 1024) + " KiB");
  if (context_->reader->len > most_bytes_of_text) return too_much("1 MiB in one text");
  return std::nullopt;
}

// ---- the first commands ----

std::optional<Error> shake_hands(Wire& wire, const std::vector<HandshakeStep>& steps) {
  if (steps.empty()) return std::nullopt;
  std::vector<Command> commands;
  commands.reserve(steps.size());
  for (const auto& step : steps) commands.push_back(step.command);
  if (auto error = wire.send(commands)) return error;
  for (const auto& step : steps) {
    const auto answer = wire.receive();
    if (!answer) return answer.error();
    if (auto error = step.check(*answer)) return error;
  }
  return std::nullopt;
}

void add_auth(std::vector<HandshakeStep>& steps, const Wire& wire, const std::string& user,
              const std::string& password) {
  if (password.empty()) return;
  steps.push_back({user.empty() ? Command{"AUTH", password} : Command{"AUTH", user, password},
                   [where = wire.name()](const Reply& reply) -> std::optional<Error> {
                     if (!reply.is_error()) return std::nullopt;
                     return explained(reply.text, where, false, "AUTH");
                   }});
}

void add_client_name(std::vector<HandshakeStep>& steps, const Wire& wire, const std::string& name) {
  steps.push_back(
      {{"CLIENT", "SETNAME", name}, [where = wire.name()](const Reply& reply) { return refused_all(reply, where); }});
}

std::optional<Error> refused_all(const Reply& reply, const std::string& where) {
  const auto code = code_of(reply.text);
  const bool full = reply.text.find("max number of clients") != reply.text.npos;
  if (!reply.is_error() || (code != "NOAUTH" && code != "DENIED" && !full)) return std::nullopt;
  return explained(reply.text, where, false);
}

std::string client_name(const std::string& election, const std::string& candidate) {
  auto name = "tenure:" + election + (candidate.empty() ? "" : ":" + candidate);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < '!' || c > '~'; }, '_');
  return name;
}

Error explained(const Reply& reply, const std::string& password, const std::string& where, std::string_view command) {
  const bool repeats = !password.empty() && reply.text.find(password) != reply.text.npos;
  return explained(reply.text, where, !repeats, command);
}

}  // namespace tenure::redis
