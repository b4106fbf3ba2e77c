// SPDX-License-Identifier: Apache-2.0
// Goal: whoever only watches a group sees who leads, and needs no right to write. Method: sessions that a test drives
// verb by verb, and a GroupObserver over a connection that may read alone where the store knows such. Every wait is
// for a condition and has a deadline.
#include <tenure/contract/group_suite.hpp>

#include <tenure/group_observer.hpp>
#include <tenure/kit/who.hpp>

namespace tenure::contract {
namespace {

std::string leader_of(const GroupObserver& observer, const std::string& election) {
  const auto who = observer.incumbent(election);
  return who ? who->name + " at " + who->address + " by " + std::to_string(who->token.value) : "nobody";
}

/// Until it is so, for a minute at most.
template <class Holds>
bool awaited(GroupObserver& observer, Holds holds) {
  const auto patient = Player::within(minutes(1));
  for (auto seen = observer.changes(); !holds(); seen = observer.await_change(seen, seconds(1)))
    if (patient.passed()) return false;
  return true;
}

std::string led_by(const Member& who, const std::string& election) {
  const auto self = read_who(who.session(0).record.who).value();
  return self.name + " at " + self.address + " by " + std::to_string(who.seen().token(election).value().value);
}

}  // namespace

TEST_P(GroupContract, AnObserverSeesWhoLeadsAndTakesNoPart) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claims("jobs") && b.claims("mails"));
  GroupObserver observer(group_->reader("orders"), group_->timing());
  const auto leads = [&](const Member& who, const std::string& election) {
    return awaited(observer, [&] { return leader_of(observer, election) == led_by(who, election); });
  };
  EXPECT_TRUE(leads(a, "jobs")) << leader_of(observer, "jobs");
  EXPECT_TRUE(leads(b, "mails"));
  ASSERT_TRUE(a.releases("jobs"));
  EXPECT_TRUE(awaited(observer, [&] { return leader_of(observer, "jobs") == "nobody"; }));
  b.look();
  ASSERT_TRUE(b.claims("jobs"));
  EXPECT_TRUE(leads(b, "jobs")) << leader_of(observer, "jobs");
  ASSERT_TRUE(b.end());
  EXPECT_TRUE(awaited(observer, [&] {
    return leader_of(observer, "jobs") + leader_of(observer, "mails") == "nobodynobody";
  })) << "one write ended both";
  const auto all = observer.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].election + " " + all[1].election, "jobs mails");
  EXPECT_EQ(observer.last_error(), std::nullopt);
  EXPECT_EQ(standing().sessions.size(), 2u) << "the observer has none";
}

TEST_P(GroupContract, AnObserverReportsThatALeaseEnded) {
  auto a = member("a");
  ASSERT_TRUE(a.claims("jobs"));
  GroupObserver observer(group_->reader("orders"), group_->timing());
  ASSERT_TRUE(awaited(observer, [&] { return leader_of(observer, "jobs") == led_by(a, "jobs"); }));
  auto last = a.renewal();
  last.next.record.term = milliseconds(500);
  ASSERT_TRUE(a.commit(last).granted);
  EXPECT_TRUE(awaited(observer, [&] { return leader_of(observer, "jobs") == "nobody"; })) << "it renews no more";
  ASSERT_TRUE(a.renew()) << "nobody ended its session";
  EXPECT_TRUE(awaited(observer, [&] { return leader_of(observer, "jobs") == led_by(a, "jobs"); })) << "late, but alive";
}

}  // namespace tenure::contract
