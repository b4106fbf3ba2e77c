// SPDX-License-Identifier: Apache-2.0
#include "handle.hpp"

#include <cstddef>
#include <cstdint>
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
  if (auto* log = static_cast<ClosableLog*>(rd_kafka_opaque(rk)))
    log->write(level <= 3   ? Level::error
               : level == 4 ? Level::warning
               : level <= 6 ? Level::info
                            : Level::debug,
               "librdkafka (" + role_of(rk) + "): " + facility + ": " + without_guess(text));
}

Conf make_conf(const Properties& properties, ClosableLog& log, int events) {
  Conf conf(rd_kafka_conf_new());
  for (const auto& [name, value] : properties) {
    char why[512] = "";
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(secret(name) ? name + ": value refused (not shown)" : log.redacted()(why));
  }
  rd_kafka_conf_set_opaque(conf.get(), &log);
  rd_kafka_conf_set_log_cb(conf.get(), log_line);
  rd_kafka_conf_set_events(conf.get(), events);
  return conf;
}

constexpr std::int16_t offset_commit = 8;  ///< The key of that request in Kafka's protocol.

/// On librdkafka's threads, like the next one.
rd_kafka_resp_err_t note_sent(rd_kafka_t*, int, const char*, std::int32_t, std::int16_t key, std::int16_t, std::int32_t,
                              std::size_t, void* commits) {
  if (key == offset_commit) static_cast<CommitRequests*>(commits)->sent();
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// Before the answer is handed on. librdkafka 2.0 calls it twice, and without the number of the request. A request that
/// was given up comes with an error, and an answer that comes later without its key.
rd_kafka_resp_err_t note_answered(rd_kafka_t*, int, const char*, std::int32_t, std::int16_t key, std::int16_t,
                                  std::int32_t, std::size_t, std::int64_t, rd_kafka_resp_err_t error, void* commits) {
  if (key == offset_commit && !error) static_cast<CommitRequests*>(commits)->answered();
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t watch_commits(rd_kafka_t* rk, const rd_kafka_conf_t*, void* commits, char*, std::size_t) {
  const auto code = rd_kafka_interceptor_add_on_request_sent(rk, "tenure", note_sent, commits);
  return code ? code : rd_kafka_interceptor_add_on_response_received(rk, "tenure", note_answered, commits);
}

}  // namespace

rd_kafka_t* make_handle(rd_kafka_type_t type, const Properties& properties, ClosableLog& log, int events,
                        CommitRequests* commits) {
  auto conf = make_conf(properties, log, events);
  if (commits && rd_kafka_conf_interceptor_add_on_new(conf.get(), "tenure", watch_commits, commits))
    throw std::runtime_error("librdkafka takes no interceptor");
  char why[512] = "";
  auto* handle = rd_kafka_new(type, conf.get(), why, sizeof why);
  if (!handle) throw std::runtime_error("librdkafka: " + printable(log.redacted()(why)));
  static_cast<void>(conf.release());  // now the handle's
  return handle;
}

void end_handle(rd_kafka_t* handle) { rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); }

}  // namespace tenure::kafka
