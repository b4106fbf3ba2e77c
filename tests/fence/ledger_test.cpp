// SPDX-License-Identifier: Apache-2.0
// Goal: of processes that are stopped in the midst of transactions, killed and restarted, while their server is killed
// and stopped too, none commits anything after its successor's claim; without the fence some do. Method: bookkeepers at
// a real server of the test's own, PostgreSQL also with a standby that takes over, and a nemesis. Each leader reads the
// ledger before it writes. What it finds of earlier tokens must be all that there ever is of them: nothing is committed
// later, and nothing is lost. What is committed between a claim and that reading is not seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "book.hpp"
#include "eventually.hpp"
#include "lateness.hpp"
#include "launched.hpp"
#include "nemesis.hpp"
#include "scratch.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

struct Subject {
  std::string name, store;
  Clock::Duration term{500ms};
  std::size_t leaders{5};  ///< So many at least, or nothing was shown. A leader of Kafka lasts for 10 to 20 s.
  std::vector<std::string> arguments{"--term-ms", "500"};
  std::vector<std::string> loose{"none"};  ///< Fences that are none.
  /// Whether the server is killed, too. A killed broker once kept the offset of a transaction pending for ever.
  bool crashes{true};
  bool promotes{};  ///< After a crash a standby takes over, and the one that was killed never comes back.
  bool refuses{};   ///< A former leader is told so by the fence. Else the server may have ended its transaction.
  friend std::ostream& operator<<(std::ostream& out, const Subject& subject) { return out << subject.name; }
};

std::vector<Subject> subjects() {
  const std::vector<std::string> in_group{"--term-ms", "500", "--elections", "1"}, plain{"none", "plain"};
  const std::vector<Subject> all{{.name = "postgres", .store = "postgres", .loose = plain},
                                 {.name = "postgres_group", .store = "postgres", .arguments = in_group, .loose = plain},
                                 {.name = "postgres_standby", .store = "postgres", .promotes = true},
                                 {.name = "etcd", .store = "etcd", .refuses = true},
                                 {.name = "redis", .store = "redis", .refuses = true},
                                 {.name = "redis_group", .store = "redis", .arguments = in_group, .refuses = true},
                                 {.name = "kafka",
                                  .store = "kafka",
                                  .term = 5s,
                                  .leaders = 3,
                                  .arguments = {"--term-ms", "5000", "--renew-ms", "500", "--call-ms", "500"},
                                  .crashes = false}};
  std::vector<Subject> built;
  std::istringstream stores(TENURE_LEDGER_STORES);
  for (std::string store; stores >> store;)
    std::copy_if(all.begin(), all.end(), std::back_inserter(built),
                 [&](const auto& one) { return one.store == store; });
  return built;
}

/// What a journal tells of a ledger.
struct Sum {
  std::map<std::string, int> events;  ///< How many of each.
  std::size_t leaders{};              ///< Who read it.
  long committed{};
  long late{};  ///< Committed by a former leader after its successor had read.
  long lost{};  ///< Read or acknowledged, and gone.
};

Sum sum_of(const std::vector<Event>& events) {
  Sum out;
  Counts kept;
  std::map<std::uint64_t, Counts> audits;
  for (const auto& e : events) {
    ++out.events[e.what];
    if (e.what == "kept") ++kept[e.token.value];
    if (e.what != "audit") continue;
    std::istringstream text(e.detail);
    auto& audit = audits[e.token.value];
    for (std::uint64_t token = 0; text >> token;) text.ignore() >> audit[token];
  }
  out.leaders = audits.size();
  if (audits.empty()) return out;
  const auto& [last, all] = *audits.rbegin();
  for (const auto& [token, count] : all) out.committed += count;
  for (auto [token, found] : audits) {
    for (const auto& [of, count] : all)
      if (of < token) out.late += std::max(0L, count - found[of]);
    for (const auto& [of, count] : found)
      if (of < token) out.lost += std::max(0L, count - (all.contains(of) ? all.at(of) : 0));
  }
  for (const auto& [token, count] : kept)
    if (token < last) out.lost += std::max(0L, count - (all.contains(token) ? all.at(token) : 0));
  return out;
}

std::ostream& operator<<(std::ostream& out, const Sum& sum) {
  out << sum.committed << " transactions of " << sum.leaders << " leaders, " << sum.late << " too late, " << sum.lost
      << " lost;";
  for (const auto* what :
       {"refused", "failed", done_to::stopped, done_to::killed, done_to::asked, done_to::crashed, done_to::frozen}) {
    const auto found = sum.events.find(what);
    out << ' ' << (found == sum.events.end() ? 0 : found->second) << ' ' << what << ',';
  }
  return out << '\n';
}

/// The server of a test; of PostgreSQL it may have a standby that has all that is acknowledged.
class Servers {
 public:
  explicit Servers(const Subject& subject)
      : server_(std::make_unique<Launched>(subject.store, subject.promotes ? synchronous : "")) {
    if (subject.promotes && runs()) follow();
  }

  bool runs() const { return server_->runs(); }
  const Launched& now() const { return *server_; }
  /// Of the one that serves at any time.
  std::string url() const {
    auto out = server_->url();
    if (standby_)
      out.insert(out.rfind('/'), ",127.0.0.1:" + standby_->said(port)).append("?target_session_attrs=read-write");
    return out;
  }
  /// The standby takes over, and another one follows it, where the first server was.
  void fail_over() {
    server_->crash();
    standby_->promote();
    const auto where = " --port " + server_->said(port);
    server_ = std::move(standby_);
    follow(where);
  }

 private:
  static constexpr auto port = "TENURE_POSTGRES_PORT";
  static constexpr auto synchronous = "--set 'synchronous_standby_names=*'";

  void follow(const std::string& where = {}) {
    standby_ =
        std::make_unique<Launched>("postgres", synchronous + where + " --standby-of " + server_->directory().string());
    EXPECT_TRUE(eventually([&] {
      return output_of("psql '" + server_->said("TENURE_POSTGRES_SOCKET") +
                       "' -Atc 'select sync_state from pg_stat_replication'") == "sync";
    }));
  }

  std::unique_ptr<Launched> server_, standby_;
};

class Ledger : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (!servers_.runs()) GTEST_SKIP() << "no server: docker/" << GetParam().store << " says why";
  }

  /// Each has a ledger of its own.
  Fleet fleet(const std::string& fence) {
    std::vector<std::string> arguments{"--store", servers_.url(), "--fence", fence, "--election", "jobs_" + fence};
    arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
    return {TENURE_BOOKKEEPERS + GetParam().store, arguments, scratch_ / fence};
  }
  /// The last one reads what has become of it all.
  static Sum closed(Fleet& fleet) {
    const auto last = fleet.start("last");
    EXPECT_NE(fleet.await(fleet.events().size(), is("audit", last), patience), Fleet::npos);
    fleet.end_all(patience);
    const auto sum = sum_of(fleet.events());
    std::cout << sum;
    return sum;
  }

  static constexpr auto patience = 90s;
  const Scratch scratch_;
  Servers servers_{GetParam()};
};

TEST_P(Ledger, WhatALeaderFindsOfItsPredecessorsIsAllThatThereEverIsOfThem) {
  auto books = fleet("strict");
  auto plan = Plan::from_environment(GetParam().term, 20);
  plan.between_most *= 2;  // the server, too, takes a while to come back
  plan.deeds = {{done_to::frozen, [&](pid_t) { servers_.now().freeze(); }, [&] { servers_.now().thaw(); }}};
  if (GetParam().promotes)
    plan.deeds.push_back({done_to::crashed, [&](pid_t) { servers_.fail_over(); }});
  else if (GetParam().crashes)
    plan.deeds.push_back({done_to::crashed, [&](pid_t) { servers_.now().crash(); }, [&] { servers_.now().restart(); }});
  plan.enough = [&] {
    const auto sum = sum_of(books.events());
    return sum.leaders >= GetParam().leaders && sum.events.contains("kept") && sum.events.at("kept") >= 50 &&
           sum.events.contains(plan.deeds.back().name);
  };
  plan.recovered = [&] { return books.leader() != 0; };
  EXPECT_TRUE(Nemesis(books, plan).run(std::cout));
  EXPECT_TRUE(plan.enough()) << "too little happened to show anything";
  const auto sum = closed(books);
  EXPECT_EQ(sum.late, 0) << TENURE_PROMISE;
  EXPECT_EQ(sum.lost, 0) << TENURE_PROMISE;
}

/// A standby changes nothing here.
class FormerLeader : public Ledger {
 protected:
  /// One stops itself just before it commits, and goes on once its successor has read the ledger.
  Sum stopped_before_its_commit(const std::string& fence);
};

Sum FormerLeader::stopped_before_its_commit(const std::string& fence) {
  SCOPED_TRACE(fence);
  auto books = fleet(fence);
  const auto former = books.start("former", {"--stops", "1"});
  EXPECT_NE(books.await(0, is("midway", former), patience), Fleet::npos);
  const auto successor = books.start("successor");
  EXPECT_NE(books.await(0, is("audit", successor), patience), Fleet::npos);
  const auto from = books.events().size();
  books.resume(former);
  const auto ended = [&](const Event& e) {
    return e.pid == former && (e.what == "kept" || e.what == "refused" || e.what == "failed");
  };
  const auto end = books.await(from, ended, patience);
  EXPECT_NE(end, Fleet::npos);
  if (end != Fleet::npos && fence == "strict" && GetParam().refuses) {
    EXPECT_EQ(books.events()[end].what, "refused");
  }
  books.end_all(patience);
  return closed(books);
}

TEST_P(FormerLeader, ThatStoodStillBeforeItsCommitCommitsOnlyWhereNoFenceIs) {
  EXPECT_EQ(stopped_before_its_commit("strict").late, 0) << TENURE_PROMISE;
  for (const auto& fence : GetParam().loose) EXPECT_GE(stopped_before_its_commit(fence).late, 1) << fence;
}

std::vector<Subject> without_standbys() {
  auto out = subjects();
  std::erase_if(out, [](const Subject& subject) { return subject.promotes; });
  return out;
}

const auto name_of = [](const auto& one) { return one.param.name; };
INSTANTIATE_TEST_SUITE_P(Stores, Ledger, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(Stores, FormerLeader, testing::ValuesIn(without_standbys()), name_of);

}  // namespace
}  // namespace tenure::test
