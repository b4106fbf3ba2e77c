// SPDX-License-Identifier: Apache-2.0
// Goal: nobody takes a lead that several processes may have for one that is exclusive. Method: the same program over
// the model of a store, which says the one or the other.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <tenure/elections.hpp>

#include "eventually.hpp"
#include "messages.hpp"
#include "model_store.hpp"
#include "refusal.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// A machine that is busy for seconds ends no lease.
const Timing timing{.term = 6s, .renew = 600ms, .retry = 60ms, .margin = 300ms, .call = 2s, .drain = 1s};

class SharedStore final : public test::ModelStore {
 public:
  SharedStore() : ModelStore(false) {}
  Exclusive exclusive() const override { return Exclusive::no; }
};

template <class... Args>
std::string refused(Args... args) {
  return test::refusal_of([&] { Elections(args..., {"a", ""}, timing, {.log = no_log}); });
}

// Rule 19 of core/src/group/README.md.
TEST(ElectionsExclusive, AStoreThatIsNotIsTakenOnlyByWhoSaysSo) {
  const std::shared_ptr<GroupStore> shared = std::make_shared<SharedStore>();
  EXPECT_TRUE(test::mentions(refused(shared), "several processes may lead an election at once"));
  EXPECT_TRUE(test::mentions(refused(shared), "Exclusive::no"));
  EXPECT_TRUE(test::mentions(refused(Exclusive::yes, shared), "several processes may lead an election at once"));
  EXPECT_EQ(refused(Exclusive::no, shared), "accepted");
}

TEST(ElectionsExclusive, WhoExpectsSeveralLeadersIsRefusedWhereThereIsOne) {
  const std::shared_ptr<GroupStore> exclusive = std::make_shared<test::ModelStore>();
  EXPECT_TRUE(test::mentions(refused(Exclusive::no, exclusive), "the store \"model\" is exclusive"));
  EXPECT_EQ(refused(Exclusive::yes, exclusive), "accepted");
  EXPECT_EQ(refused(exclusive), "accepted");
}

/// What a program over this store is told of its tenure of "e".
struct Told {
  bool leads, exclusive, handle_exclusive, token, guard;
  Token elected{}, ousted{}, listed{};
};
Told told(Exclusive mode, std::shared_ptr<GroupStore> store) {
  std::atomic<std::uint64_t> elected{77}, ousted{77};
  Elections elections(mode, std::move(store), {"a", ""}, timing,
                      {.elected = [&](const Elected& e) { elected = e.token.value; },
                       .ousting = [&](const Ousting& o) { ousted = o.token.value; },
                       .log = no_log});
  elections.join("e");
  const auto handle = elections.leadership("e");
  elections.start();
  EXPECT_TRUE(eventually([&] { return elected != 77; }));
  Told out{.leads = elections.is_leader("e") && handle.is_leader() && handle.remaining() > 0s,
           .exclusive = elections.exclusive(),
           .handle_exclusive = handle.exclusive(),
           .token = handle.token().has_value(),
           .guard = handle.guard(0s).has_value(),
           .elected = Token{elected}};
  for (const auto& [election, token] : elections.led()) out.listed = token;
  elections.stop();
  out.ousted = Token{ousted};
  return out;
}

TEST(ElectionsExclusive, WithoutItThereIsALeadAndNoTokenAnywhere) {
  const auto seen = told(Exclusive::no, std::make_shared<SharedStore>());
  EXPECT_TRUE(seen.leads);
  EXPECT_FALSE(seen.exclusive);
  EXPECT_FALSE(seen.handle_exclusive);
  EXPECT_FALSE(seen.token);
  EXPECT_FALSE(seen.guard);
  EXPECT_EQ(seen.elected, Token{});
  EXPECT_EQ(seen.ousted, Token{});
  EXPECT_EQ(seen.listed, Token{});
}

TEST(ElectionsExclusive, WithItThereIsAToken) {
  const auto seen = told(Exclusive::yes, std::make_shared<test::ModelStore>(false));
  EXPECT_TRUE(seen.leads);
  EXPECT_TRUE(seen.exclusive);
  EXPECT_TRUE(seen.handle_exclusive);
  EXPECT_TRUE(seen.token);
  EXPECT_TRUE(seen.guard);
  EXPECT_GT(seen.elected, Token{});
  EXPECT_EQ(seen.ousted, seen.elected);
  EXPECT_EQ(seen.listed, seen.elected);
}

}  // namespace
}  // namespace tenure
