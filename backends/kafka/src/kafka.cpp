// SPDX-License-Identifier: Apache-2.0
// open(), and the timings that suit Kafka.
#include <tenure/kafka.hpp>

#include <utility>

#include "carrier.hpp"
#include "kafka_backend.hpp"

namespace tenure::kafka {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

Presets own_broker_presets() {
  return {.fast = {.term = milliseconds(160),
                   .renew = milliseconds(25),
                   .retry = milliseconds(5),
                   .margin = milliseconds(35),
                   .call = milliseconds(50),
                   .drain = milliseconds(160)},
          .balanced = {.term = milliseconds(500),
                       .renew = milliseconds(50),
                       .retry = milliseconds(10),
                       .margin = milliseconds(75),
                       .call = milliseconds(150),
                       .drain = milliseconds(500)},
          .steady = {.term = milliseconds(1500),
                     .renew = milliseconds(200),
                     .retry = milliseconds(40),
                     .margin = milliseconds(150),
                     .call = milliseconds(400),
                     .drain = milliseconds(1500)}};
}

std::shared_ptr<Backend> open(Options given) {
  auto options = completed(std::move(given));
  const auto log = std::make_shared<ClosableLog>(options);
  for (const auto& host : plaintext_hosts(options))
    log->write(Level::warning, unprotected("broker " + host, "Set the property security.protocol to ssl or sasl_ssl"));
  auto observer = std::make_unique<Reader>(options, options.group, log);
  return std::make_shared<KafkaBackend>(Carrier::make(std::move(options), log, std::move(observer)));
}

}  // namespace tenure::kafka
