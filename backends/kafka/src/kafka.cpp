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

std::shared_ptr<Backend> open(Options given) {
  auto options = completed(std::move(given));
  const auto log = std::make_shared<ClosableLog>(options);
  for (const auto& host : plaintext_hosts(options))
    log->write(Level::warning, unprotected("broker " + host, "Set the property security.protocol to ssl or sasl_ssl"));
  auto observer = make_observer(options, options.group, log);
  return std::make_shared<KafkaBackend>(Carrier::make(std::move(options), log, std::move(observer)));
}

}  // namespace tenure::kafka
