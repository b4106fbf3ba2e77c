// SPDX-License-Identifier: Apache-2.0
#include "stores.hpp"

#include <map>
#include <stdexcept>

#include <tenure/file.hpp>
#include <tenure/lock_table.hpp>
#ifdef TENURE_TEST_KAFKA
#include <tenure/kafka.hpp>
#endif

namespace tenure::test {
namespace {

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

template <class Presets>
Timing choose(const StoreArguments& a, Presets presets) {
  if (a.preset.empty()) return Timing::of(a.term);
  const auto it = presets.find(a.preset);
  if (it == presets.end()) throw std::invalid_argument("--preset " + a.preset + ": fast, balanced or steady");
  return it->second();
}

using Presets = std::map<std::string, Timing (*)()>;

}  // namespace

OpenedStore open_store(const StoreArguments& a) {
  if (starts_with(a.url, "file://")) {
    namespace t = lock_table_timing;
    const auto timing = choose(a, Presets{{"fast", t::fast}, {"balanced", t::balanced}, {"steady", t::steady}});
    return {file::open(a.url.substr(7), a.election, {a.name, {}}), timing};
  }
#ifdef TENURE_TEST_KAFKA
  if (starts_with(a.url, "kafka://")) {
    const auto slash = a.url.find('/', 8);
    const auto query = a.url.find("?group=");
    if (slash == a.url.npos || query == a.url.npos)
      throw std::invalid_argument("--store kafka://BROKERS/TOPIC?group=G");
    kafka::Options options;
    options.brokers = a.url.substr(8, slash - 8);
    options.topic = a.url.substr(slash + 1, query - slash - 1);
    options.group = a.url.substr(query + 7);
    options.candidate.name = a.name;
    options.create_topic = kafka::CreateTopic{};
    return {kafka::open(options),
            choose(a, Presets{{"fast", kafka::fast}, {"balanced", kafka::balanced}, {"steady", kafka::steady}})};
  }
#endif
  throw std::invalid_argument("--store " + a.url + ": not known in this build");
}

}  // namespace tenure::test
