// SPDX-License-Identifier: Apache-2.0
// A candidate as a process of its own, which keeps a ledger while it leads, in transactions that last some time.
// ledger_test.cpp judges what its leaders read there. Its journal has the events of candidate.cpp, but of a sample only
// whether it leads, and these:
//
// event    fields         meaning
// audit    token detail   it leads, has kept nothing yet, and has read so many transactions of each token: "1:20 2:5"
// midway   token          with --stops: it stops itself here, in its first transaction, just before the commit
// kept     token          a transaction was committed
// refused  token          the fence refused it
// failed   message        the store does not say what became of it
//
// bookkeeper_STORE --store URL --election E --log FILE --name N --term-ms N --fence F [--elections 1] [--stops 1]
//   F: see STORE_book.cpp. With --elections it is the election "jobs" of group E
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>

#include <tenure/elections.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

#include "book.hpp"
#include "journal.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using namespace tenure::test;

/// Keeps the book on a thread of its own, on a connection of its own.
class Bookkeeper {
 public:
  Bookkeeper(Desk desk, const Journal& journal)
      : desk_(std::move(desk)), journal_(journal), stops_(desk_.args.number("--stops") > 0) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) try {
        const auto token = desk_.leadership.token();
        if (token.has_value() != leads_) journal_.now((leads_ = token.has_value()) ? "lead" : "follow");
        if (!book_) book_ = open_book(desk_);
        if (token)
          work(*token, stop);
        else
          rest(stop, 1ms);
      } catch (const std::exception& e) {
        if (leads_) journal_.now("failed", "\"message\":" + json_text(e.what()));
        book_.reset();
        rest(stop, 20ms);
      }
  }

 private:
  void work(Token token, const std::stop_token& stop) {
    if (token != audited_) {
      std::string all;
      for (const auto& [of, count] : book_->read()) all += std::to_string(of) + ':' + std::to_string(count) + ' ';
      journal_.now("audit", token_field(token) + ",\"detail\":\"" + all + '"');
      audited_ = token;
    }
    const bool kept = book_->keep(token, [&](Book::Moment moment) {
      if (moment == Book::Moment::about_to_commit && std::exchange(stops_, false)) {
        journal_.now("midway", token_field(token));
        ::raise(SIGSTOP);
      }
      rest(stop, std::chrono::milliseconds(std::uniform_int_distribution(0, 20)(random_)));
    });
    journal_.now(kept ? "kept" : "refused", token_field(token));
  }

  /// Where most of a transaction's time goes, so that a process is mostly stopped in the midst of one.
  static void rest(const std::stop_token& stop, std::chrono::milliseconds pause) {
    wait_out({boot_clock(), boot_clock().now() + pause, stop});
  }

  const Desk desk_;
  const Journal& journal_;
  std::unique_ptr<Book> book_;
  bool leads_{};  ///< As it noted last.
  bool stops_;
  Token audited_{};
  std::mt19937 random_{std::random_device()()};
};

template <class Candidate>
void keep_books(Candidate& candidate, const Desk& desk, const Journal& journal, const sigset_t& signals) {
  Bookkeeper bookkeeper(desk, journal);
  take_part(
      candidate, desk.args, journal, signals, [&](Pace, const std::stop_token& stop) { bookkeeper.run(stop); }, [] {});
}

int run(int argc, char** argv) {
  const auto args = told(argc, argv, {{"--fence", std::nullopt}, {"--stops", "0"}});
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Journal journal(args.text("--log"));
  auto hooks = noting(journal, args, false);
  hooks.log = no_log;  // the journal has it
  const Candidate self{args.text("--name"), {}};
  if (args.number("--elections") > 0) {
    const auto opened = open_many(args.text("--store"), args.text("--election"), no_log);
    const auto timing = timing_of(args, opened.presets);
    Elections elections(opened.store, self, timing, hooks);
    elections.join("jobs");
    journal.start(self.name, timing);
    keep_books(elections, {args, elections.leadership("jobs"), nullptr}, journal, signals);
    return 0;
  }
  const auto opened = open(args.text("--store"), args.text("--election"), self, no_log);
  const auto timing = timing_of(args, opened.presets);
  LeaderManager manager(opened.backend, timing, hooks);
  journal.start(self.name, timing);
  keep_books(manager, {args, manager.leadership(), opened.backend}, journal, signals);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "bookkeeper: %s\n", e.what());
  return 2;
}
