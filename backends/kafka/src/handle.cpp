// SPDX-License-Identifier: Apache-2.0
#include "handle.hpp"

#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tenure/kit/logging.hpp>

#include "errors.hpp"

namespace tenure::kafka {
namespace {

/// Which handle of a candidate: their names begin with their client ids.
std::string role_of(const rd_kafka_t* rk) {
  const std::string_view name(rd_kafka_name(rk));
  return name.starts_with(observer_client_id) ? "reader" : "member";
}

void log_line(const rd_kafka_t* rk, int level, const char* facility, const char* text) {
  auto* callbacks = static_cast<Callbacks*>(rd_kafka_opaque(rk));
  if (!callbacks) return;
  const auto at = level <= 3 ? Level::error : level == 4 ? Level::warning : level <= 6 ? Level::info : Level::debug;
  try {
    callbacks->log.write(at, "librdkafka (" + role_of(rk) + "): " + facility + ": " + without_guess(text));
  } catch (const std::exception&) {  // No memory for the line. The caller is C.
  }
}

int close_socket(int fd, void* callbacks) {
  ++static_cast<Callbacks*>(callbacks)->closed;
  return ::close(fd);
}

Conf make_conf(const Properties& properties, Callbacks& callbacks, int events) {
  Conf conf(rd_kafka_conf_new());
  for (const auto& [name, value] : properties) {
    char why[512] = "";
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(secret(name) ? name + ": value refused (not shown)" : callbacks.log.redacted()(why));
  }
  rd_kafka_conf_set_opaque(conf.get(), &callbacks);
  rd_kafka_conf_set_closesocket_cb(conf.get(), close_socket);
  rd_kafka_conf_set_log_cb(conf.get(), log_line);
  rd_kafka_conf_set_events(conf.get(), events);
  return conf;
}

}  // namespace

rd_kafka_t* make_handle(rd_kafka_type_t type, const Properties& properties, Callbacks& callbacks, int events) {
  auto conf = make_conf(properties, callbacks, events);
  char why[512] = "";
  auto* handle = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (!handle) throw std::runtime_error("librdkafka: " + printable(callbacks.log.redacted()(why)));
  static_cast<void>(conf.release());  // now the handle's
  return handle;
}

void end_handle(rd_kafka_t* handle) { rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); }

}  // namespace tenure::kafka
