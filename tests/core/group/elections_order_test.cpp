// SPDX-License-Identifier: Apache-2.0
// Goal: the hooks of an election are called in the order of its events, also if one answer brings several. Method: the
// model of a store, whose answer to the first claim shows that the election was taken already.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tenure/elections.hpp>

#include "eventually.hpp"
#include "model_store.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;

class TakenAtOnce final : public test::ModelStore {
 public:
  TakenAtOnce() : ModelStore(false) {}
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    auto done = ModelStore::commit(commit, limit);
    if (!done || done->claimed.empty() || taken_.exchange(true)) return done;
    auto& lead = done->look.leads.at("e");
    lead.token = {lead.token.value + 1};
    lead.session = {7};
    return done;
  }

 private:
  std::atomic<bool> taken_{false};
};

TEST(ElectionsOrder, ATenureThatEndsWithTheAnswerThatBeganItIsElectedFirst) {
  std::mutex mutex;
  std::vector<std::string> calls;
  const auto note = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    calls.push_back(what);
  };
  const Hooks hooks{.elected = [&](const Elected&) { note("elected"); },
                    .ousting = [&](const Ousting&) { note("ousting"); },
                    .error = [](const Error&) {},
                    .log = no_log};
  Elections elections(std::make_shared<TakenAtOnce>(), Candidate{"me"},
                      {.term = 6s, .renew = 600ms, .retry = 60ms, .margin = 300ms, .call = 2s, .drain = 1s}, hooks);
  elections.join("e");
  elections.start();
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return calls.size() >= 2;
  }));
  elections.stop();
  EXPECT_EQ(calls, (std::vector<std::string>{"elected", "ousting"}));
}

class Told final : public test::ModelStore {
 public:
  Told() : ModelStore(false) {}
  void joined(const std::string& election) override {
    asks();
    note("joined " + election);
  }
  void left(const std::string& election) override { note("left " + election); }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(what);
  }
  std::function<void()> asks{[] {}};  ///< As long as it joins.
  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

/// Else it would leave out the lead of one that is joined again while its work ends, and that would look lost.
TEST(ElectionsOrder, TheStoreHearsThatAnElectionIsLeftOnceItsWorkHasEnded) {
  const auto store = std::make_shared<Told>();
  const Hooks hooks{.elected = [&](const Elected&) { store->note("elected"); },
                    .ousting = [&](const Ousting&) { store->note("ousting"); },
                    .error = [](const Error&) {},
                    .log = no_log};
  Elections elections(store, Candidate{"me"},
                      {.term = 6s, .renew = 600ms, .retry = 60ms, .margin = 300ms, .call = 2s, .drain = 1s}, hooks);
  store->asks = [&] { elections.unled(); };  // No lock is held that this needs.
  elections.join("e");
  elections.start();
  ASSERT_TRUE(eventually([&] { return store->told().size() >= 2; }));
  elections.leave("e");
  ASSERT_TRUE(eventually([&] { return store->told().size() >= 4; }));
  EXPECT_EQ(store->told(), (std::vector<std::string>{"joined e", "elected", "ousting", "left e"}));
}

}  // namespace
}  // namespace tenure
