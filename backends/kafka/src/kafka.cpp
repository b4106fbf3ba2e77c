// SPDX-License-Identifier: Apache-2.0
// open(), what it shares with open_group(), and the timings that suit Kafka.
#include <tenure/kafka_group.hpp>

#include <utility>

#include "neli_threads.hpp"

namespace tenure::kafka {

namespace {

/// All in milliseconds.
Timing timing(int term, int renew, int retry, int margin, int call, int drain) {
  using std::chrono::milliseconds;
  return {.term = milliseconds(term),
          .renew = milliseconds(renew),
          .retry = milliseconds(retry),
          .margin = milliseconds(margin),
          .call = milliseconds(call),
          .drain = milliseconds(drain)};
}

}  // namespace

Presets presets() {
  return {.fast = timing(6250, 500, 100, 250, 2000, 6000),
          .balanced = timing(13000, 1000, 200, 500, 2000, 13000),
          .steady = timing(22000, 2000, 400, 1000, 2000, 22000)};
}

Presets own_broker_presets() {
  return {.fast = timing(160, 25, 5, 35, 50, 160),
          .balanced = timing(500, 50, 10, 75, 150, 500),
          .steady = timing(1500, 200, 40, 150, 400, 1500)};
}

Presets group_presets(Exclusive exclusive) {
  if (exclusive == Exclusive::yes) return presets();
  return {.fast = timing(26500, 1000, 100, 500, 2000, 6000),
          .balanced = timing(50750, 2000, 200, 750, 2000, 12000),
          .steady = timing(83000, 3000, 400, 1000, 2000, 20000)};
}

Prepared prepared(Options given, int partitions) {
  Prepared out{.options = completed(std::move(given)), .log = {}, .observer = {}};
  out.log = std::make_shared<ClosableLog>(out.options);
  warn_without_tls(out.options, *out.log);
  out.observer = std::make_unique<Reader>(out.options, out.options.group, out.log, partitions);
  return out;
}

std::shared_ptr<Backend> open(Options given) {
  auto [options, log, observer] = prepared(std::move(given), record_and_nonce);
  return std::make_shared<KafkaBackend>(NeliThreads::make(std::move(options), std::move(log), std::move(observer)));
}

}  // namespace tenure::kafka
