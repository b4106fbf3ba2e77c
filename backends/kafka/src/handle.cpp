// SPDX-License-Identifier: Apache-2.0
// Sets the properties of a handle, and takes its log lines.
#include "handle.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/logging.hpp>

#include "errors.hpp"

namespace tenure::kafka {
namespace {

/// Which handle of a candidate: their names begin with their client ids.
std::string role_of(const rd_kafka_t* rk) {
  if (rd_kafka_type(rk) == RD_KAFKA_PRODUCER) return "producer";
  const std::string_view name(rd_kafka_name(rk));
  return name.starts_with(observer_client_id) ? "reader" : "member";
}

void log_line(const rd_kafka_t* rk, int level, const char* facility, const char* text) {
  auto* callbacks = static_cast<Callbacks*>(rd_kafka_opaque(rk));
  if (!callbacks) return;
  const auto at = level <= 3 ? Level::error : level == 4 ? Level::warning : level <= 6 ? Level::info : Level::debug;
  try {
    const auto more =
        at == Level::debug ? std::optional<std::string>("") : callbacks->lines.told(facility, text, boot_clock().now());
    if (more)
      callbacks->log.write(at, "librdkafka (" + role_of(rk) + "): " + facility + ": " + without_guess(text) + *more);
  } catch (const std::exception&) {  // No memory for the line. The caller is C.
  }
}

void tell_throttle(rd_kafka_t*, const char* broker, std::int32_t, int ms, void* opaque) {
  constexpr int worth_telling = 100;
  auto& callbacks = *static_cast<Callbacks*>(opaque);
  if (ms >= worth_telling) try {
      if (const auto more = callbacks.lines.told("THROTTLE", "", boot_clock().now()))
        callbacks.log.write(Level::warning, throttled(broker, ms) + *more);
    } catch (const std::exception&) {  // No memory for the line. The caller is C.
    }
}

int close_socket(int fd, void* callbacks) {
  ++static_cast<Callbacks*>(callbacks)->closed;
  return ::close(fd);
}

/// On a thread of librdkafka's own. The caller is C.
void give_token(rd_kafka_t* rk, const char*, void* opaque) try {
  auto& log = static_cast<Callbacks*>(opaque)->log;
  const auto failed = [&](const std::string& why) { rd_kafka_oauthbearer_set_token_failure(rk, why.c_str()); };
  const auto token = log.token();
  // librdkafka takes no empty text.
  if (!token) return failed("there is no token: " + printable(log.redacted()(token.error().message), 300));
  std::vector<const char*> extensions;
  for (const auto& [name, value] : token->extensions)
    extensions.insert(extensions.end(), {name.c_str(), value.c_str()});
  // Beyond that the sum would overflow, and librdkafka reckons in microseconds.
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 100);
  const auto lasts = std::clamp(token->lasts, -longest, longest);
  char why[512] = "";
  if (rd_kafka_oauthbearer_set_token(rk, token->value.c_str(), boot_clock().unix_ms() + lasts.count(),
                                     token->principal.c_str(), extensions.data(), extensions.size(), why, sizeof why))
    failed("the token is refused: " + printable(Redactor({token->value})(why), 300));
} catch (...) {  // Want of memory, too: this takes none.
  rd_kafka_oauthbearer_set_token_failure(rk, "the source of tokens threw what is no std::exception, or memory ran out");
}

Conf make_conf(const Properties& properties, Callbacks& callbacks, int events) {
  Conf conf(rd_kafka_conf_new());
  auto all = callbacks.log.login();
  all.insert(properties.begin(), properties.end());
  for (const auto& [name, value] : all) {
    char why[512] = "";
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(secret(name) ? name + ": value refused (not shown)" : callbacks.log.redacted()(why));
  }
  rd_kafka_conf_set_opaque(conf.get(), &callbacks);
  rd_kafka_conf_set_closesocket_cb(conf.get(), close_socket);
  rd_kafka_conf_set_log_cb(conf.get(), log_line);
  rd_kafka_conf_set_throttle_cb(conf.get(), tell_throttle);
  rd_kafka_conf_set_events(conf.get(), events);
  if (callbacks.log.has_tokens()) {
    rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf.get(), give_token);
    rd_kafka_conf_enable_sasl_queue(conf.get(), 1);
  }
  return conf;
}

}  // namespace

std::optional<std::string> LineLimit::told(std::string_view facility, std::string_view text, Clock::Time now) {
  constexpr auto pause = std::chrono::minutes(1);
  constexpr std::size_t most = 100;
  const auto thread = text.starts_with("[thrd:") ? text.substr(0, text.find(']')) : std::string_view();
  const std::lock_guard lock(mutex_);
  if (kinds_.size() >= most) kinds_.clear();
  const auto [it, added] = kinds_.try_emplace(std::string(facility) + std::string(thread));
  auto& kind = it->second;
  if (!added && now < kind.told + pause) return ++kind.untold, std::nullopt;
  kind.told = now;
  const int untold = std::exchange(kind.untold, 0);
  return untold == 0 ? "" : " (and " + std::to_string(untold) + " more of this kind before)";
}

rd_kafka_t* make_handle(rd_kafka_type_t type, const Properties& properties, Callbacks& callbacks, int events) {
  auto conf = make_conf(properties, callbacks, events);
  char why[512] = "";
  auto* handle = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (!handle) throw std::runtime_error("librdkafka: " + printable(callbacks.log.redacted()(why)));
  static_cast<void>(conf.release());  // now the handle's
  if (!callbacks.log.has_tokens()) return handle;
  // By a thread of its own, because a source of tokens may block, and no election waits for it.
  if (const auto error = owned<rd_kafka_error_destroy>(rd_kafka_sasl_background_callbacks_enable(handle))) {
    const std::string text = rd_kafka_error_string(error.get());
    end_handle(handle);
    throw std::runtime_error("librdkafka: " + text);
  }
  return handle;
}

void end_handle(rd_kafka_t* handle) { rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); }

}  // namespace tenure::kafka
