// SPDX-License-Identifier: Apache-2.0
// A candidate of PostgreSQL as a process of its own, which writes into a ledger while it leads, in transactions that
// last some time. ledger_test.cpp judges the ledger. Its journal has the events of candidate.cpp, but of a sample only
// whether it leads.
//
// bookkeeper --store URL --election E --log FILE --name N --term-ms N --ledger TABLE --fence strict|plain|none
//   strict: hold(); plain: a predicate without a lock; none: it trusts its lease
#include <tenure/fence/postgres.hpp>

#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/postgres.hpp>

#include "journal.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using namespace tenure::test;

/// Keeps books on a thread of its own, on a connection of its own.
class Bookkeeper {
 public:
  Bookkeeper(Leadership leadership, const Journal& journal, const Options& args)
      : leadership_(std::move(leadership)),
        journal_(journal),
        store_(args.text("--store")),
        election_(args.text("--election")),
        ledger_(args.text("--ledger")),
        fence_(args.text("--fence")) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        pqxx::connection db(store_);
        for (int count = 0; !stop.stop_requested(); ++count) {
          if (count % 3 == 0) keep<pqxx::read_committed>(db, stop);
          if (count % 3 == 1) keep<pqxx::repeatable_read>(db, stop);
          if (count % 3 == 2) keep<pqxx::serializable>(db, stop);
        }
      } catch (const pqxx::failure&) {  // the server has ended the session, or refused to serialize
        rest(stop);
      }
    }
  }

 private:
  template <pqxx::isolation_level level>
  void keep(pqxx::connection& db, const std::stop_token& stop) {
    const auto token = leadership_.token();
    if (token.has_value() != leads_) journal_.now((leads_ = token.has_value()) ? "lead" : "follow");
    if (!token) return rest(stop);
    pqxx::transaction<level> tx(db);
    tx.exec("insert into " + ledger_ + " values (" + std::to_string(token->value) + ")");
    rest(stop);
    if (!may_commit(tx, *token)) return;
    rest(stop);
    tx.commit();
  }

  bool may_commit(pqxx::dbtransaction& tx, Token token) const {
    const auto left = std::chrono::floor<std::chrono::milliseconds>(leadership_.remaining());
    if (fence_ == "strict") return fence::hold(tx, election_, token, left);
    if (fence_ == "plain")
      return !tx.exec("select 1 from tenure_elections where election = '" + election_ +
                      "' and token = " + std::to_string(token.value))
                  .empty();
    return true;
  }

  /// Where most of a transaction's time goes, so that a process is mostly stopped in the midst of one.
  void rest(const std::stop_token& stop) {
    const std::chrono::milliseconds pause(std::uniform_int_distribution(0, 20)(random_));
    wait_out({boot_clock(), boot_clock().now() + pause, stop});
  }

  const Leadership leadership_;
  const Journal& journal_;
  const std::string store_, election_, ledger_, fence_;
  bool leads_{};  ///< As it noted last.
  std::mt19937 random_{std::random_device()()};
};

int run(int argc, char** argv) {
  const auto args = told(argc, argv, {{"--ledger", std::nullopt}, {"--fence", std::nullopt}});
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Journal journal(args.text("--log"));
  const auto opened = postgres::open_url(
      {.url = args.text("--store"), .election = args.text("--election"), .candidate = {args.text("--name"), {}}});
  const auto timing = timing_of(args, opened.presets);
  LeaderManager manager(opened.backend, timing, noting(journal, args, false));
  journal.start(args.text("--name"), timing);
  Bookkeeper bookkeeper(manager.leadership(), journal, args);
  take_part(
      manager, args, journal, signals, [&](Pace, const std::stop_token& stop) { bookkeeper.run(stop); },
      [&] { manager.resign(); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "bookkeeper: %s\n", e.what());
  return 2;
}
