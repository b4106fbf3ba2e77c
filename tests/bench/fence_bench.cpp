// SPDX-License-Identifier: Apache-2.0
// What PostgreSQL's strict fence costs: a transaction with and without it, beside one round trip; and a renewal of the
// election while others run such transactions. In turns in each round, so that the ratio is of one run.
//
// fence_bench --store postgresql://... [--rounds 21] [--connections 1]
//   --connections: so many run transactions beside the renewals
#include <latch>
#include <stdexcept>
#include <thread>
#include <utility>

#include <tenure/fence/postgres.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/stores.hpp>

#include "program_options.hpp"
#include "table.hpp"

namespace {

using namespace tenure;
using namespace std::chrono_literals;

constexpr int batch = 50;
constexpr auto election = "fence_bench", table = "fence_bench_rows";
using How = std::pair<const char*, bool>;
constexpr How ways[]{{"without the fence", false}, {"with it", true}};

template <class Step>
double ms_of(int times, const Step& step) {
  const auto began = boot_clock().now();
  for (int i = 0; i < times; ++i) step();
  return std::chrono::duration<double, std::milli>(boot_clock().now() - began).count() / times;
}

void transact(pqxx::connection& db, Token token, bool fenced) {
  pqxx::work tx(db);
  tx.exec(std::string("insert into ") + table + " values (" + std::to_string(token.value) + ")");
  if (fenced && !fence::hold(tx, election, token, 10s)) throw std::runtime_error("the fence refuses its own leader");
  tx.commit();
}

/// As long as it lives, transactions go on, on each connection.
class Others {
 public:
  Others(const std::string& url, Token token, bool fenced, std::size_t connections)
      : begun_(static_cast<std::ptrdiff_t>(connections)) {
    for (std::size_t i = 0; i < connections; ++i)
      all_.emplace_back([&begun = begun_, url, token, fenced](const std::stop_token& stop) {
        pqxx::connection db(url);
        transact(db, token, fenced);
        begun.count_down();
        while (sleep_for(2ms, stop)) transact(db, token, fenced);
      });
    begun_.wait();
  }

 private:
  std::latch begun_;
  std::vector<std::jthread> all_;
};

}  // namespace

int main(int argc, char** argv) try {
  const test::Options args(argc, argv, {{"--store", std::nullopt}, {"--rounds", "21"}, {"--connections", "1"}});
  const auto url = args.text("--store");
  const auto backend = open(url, election, {"bench", {}}, no_log).backend;
  const auto soon = [] { return Limit{boot_clock(), boot_clock().now() + 10s, {}}; };
  const auto answer = backend->acquire(soon());
  const auto* granted = std::get_if<Granted>(&answer);
  if (!granted) throw std::runtime_error("somebody else leads fence_bench, or did a moment ago");
  pqxx::connection db(url);
  pqxx::nontransaction(db).exec(std::string("create table if not exists ") + table + " (token bigint)");

  std::vector<double> trip, transaction[2], renewal[2], ratio;
  for (std::size_t round = 0; round < args.number("--rounds"); ++round) {
    trip.push_back(ms_of(batch, [&] { pqxx::nontransaction(db).exec("select 1"); }));
    for (const auto& [name, fenced] : ways)
      transaction[fenced].push_back(ms_of(batch, [&] { transact(db, granted->token, fenced); }));
    for (const auto& [name, fenced] : ways) {
      const Others others(url, granted->token, fenced, args.number("--connections"));
      double all = 0;
      for (int i = 0; i < batch; ++i, sleep_for(1ms))
        all += ms_of(1, [&] {
          if (!std::holds_alternative<Granted>(backend->renew(granted->token, soon())))
            throw std::runtime_error("a renewal was not granted");
        });
      renewal[fenced].push_back(all / batch);
    }
    ratio.push_back(renewal[true].back() / renewal[false].back());
  }
  bench::print_header("ms");
  bench::print_row("a round trip", trip);
  for (const auto& [name, fenced] : ways) bench::print_row(std::string("a transaction ") + name, transaction[fenced]);
  for (const auto& [name, fenced] : ways)
    bench::print_row(std::string("a renewal beside transactions ") + name, renewal[fenced]);
  bench::print_row("the second renewal / the first", ratio);
  pqxx::nontransaction(db).exec(std::string("drop table ") + table);
  backend->release(soon());
} catch (const std::exception& e) {
  std::fprintf(stderr, "fence_bench: %s\n", e.what());
  return 2;
}
