// SPDX-License-Identifier: Apache-2.0
// How each store is opened. Nothing connects before a manager starts. Built if all stores are there.
#include <iostream>
#include <stdexcept>

#include <tenure/etcd.hpp>
#include <tenure/file.hpp>
#include <tenure/kafka.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>
#include <tenure/postgres.hpp>
#include <tenure/redis.hpp>
#include <tenure/stores.hpp>

static void campaign(const std::shared_ptr<tenure::Backend>& backend, const tenure::Timing& timing) {
  const tenure::LeaderManager manager(backend, timing);
}

int main() try {
  {
    //! [url]
    auto opened = tenure::redis::open_url({.url = "redis://localhost", .election = "reports"});
    tenure::LeaderManager manager(opened.backend, opened.presets.balanced);
    //! [url]
  }
  {
    //! [any]
    auto opened = tenure::open("postgres://user@db/app", "reports");  // or redis://, kafka://, file:///, memory:
    //! [any]
    campaign(opened.backend, opened.presets.balanced);
  }
  {
    //! [options]
    auto backend = tenure::kafka::open({.brokers = "b1:9092,b2:9092", .group = "reports"});
    tenure::LeaderManager manager(backend, tenure::kafka::presets().balanced);
    //! [options]
  }
  //! [more]
  using namespace tenure;
  auto a = kafka::open_url({.url = "kafka://b1:9092,b2:9092/elections", .election = "reports"});
  auto b = postgres::open_url({.url = "postgres://user@db/app?sslmode=verify-full", .election = "reports"});
  auto c = redis::open({.servers = {{.host = "r1"}, {.host = "r2"}}}, "reports");  // a cluster
  auto d = etcd::open_url({.url = "etcd://e1,e2,e3", .election = "reports"});
  auto e = file::open("/run/myservice", "reports");
  auto f = memory::open(memory::hub(), "reports");
  auto g = redis::open_url({.url = "rediss://cache", .election = "reports", .user = "u", .password = "secret"});
  //! [more]
  for (const auto& opened : {a, b, d, g}) campaign(opened.backend, opened.presets.fast);
  for (const auto& backend : {c, e, f}) campaign(backend, lock_table_presets().fast);
} catch (const std::invalid_argument& e) {  // such as rediss:// where hiredis has no TLS
  std::cerr << e.what() << "\n";
  return 1;
}
