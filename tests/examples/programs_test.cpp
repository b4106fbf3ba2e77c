// SPDX-License-Identifier: Apache-2.0
// Goal: each program in examples/ does what its head says. Method: each runs as a process until it has printed that.
// Those that take a store get one; the others use /tmp/tenure-example, as the README shows them. Somebody may try them
// there meanwhile, so that no test demands to be the first one to lead. tests/house demands that no program is left
// out.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "example.hpp"
#include "messages.hpp"
#include "scratch.hpp"

namespace tenure::test {
namespace {

class Examples : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/tmp/tenure-example", F_OK) == 0 && ::access("/tmp/tenure-example", W_OK) != 0)
      GTEST_SKIP() << "/tmp/tenure-example belongs to somebody else";
  }
};

/// What is typed to a program: a file that it reads as its stdin.
class Keyboard {
 public:
  Keyboard() : path_((scratch_ / "keyboard").string()) {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  }
  ~Keyboard() { ::close(fd_); }
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  Streams streams() const { return {.stdin_closed = false, .in = path_}; }
  void enter() const { EXPECT_EQ(::write(fd_, "\n", 1), 1); }

 private:
  const Scratch scratch_;
  const std::string path_;
  int fd_{};
};

TEST_F(Examples, ATaskRunsInOneProcessAndThenInTheOther) {
  const Keyboard of_first, of_second;
  Example first({"leader"}, {}, of_first.streams());
  ASSERT_TRUE(first.says("leading with token ")) << first.told();
  Example second({"leader"}, {}, of_second.streams());
  of_first.enter();
  EXPECT_EQ(first.ended(), 0) << first.told();
  EXPECT_TRUE(mentions(first.out(), "no longer leading\n")) << first.told();
  EXPECT_TRUE(second.says("leading with token ")) << second.told();
  of_second.enter();
  EXPECT_EQ(second.ended(), 0) << second.told();
}

TEST_F(Examples, HooksRunForEachTenure) {
  Example hooks({"hooks"});
  ASSERT_TRUE(hooks.says("leads reports with token ")) << hooks.told();
  hooks.stop();
  EXPECT_TRUE(mentions(hooks.out(), "ends: stopped")) << hooks.told();
}

TEST_F(Examples, WhoAsksWritesOrFollows) {
  Example first({"asking"});
  ASSERT_TRUE(first.says("writes with token ")) << first.told();
  Example second({"asking"});
  EXPECT_TRUE(second.says("follows ")) << second.told();
  first.stop();
  second.stop();
}

TEST_F(Examples, WhoWaitsLeadsAndEnds) {
  Example waiting({"waiting"});
  EXPECT_EQ(waiting.ended(), 0) << waiting.told();
  EXPECT_TRUE(mentions(waiting.out(), "migrates with token ")) << waiting.told();
}

TEST_F(Examples, AnObserverSeesWhoLeadsAndWhereAndThatNobodyDoes) {
  Example observer({"observer"});
  Example leader({"hooks"});
  EXPECT_TRUE(observer.says("a leads, at 10.0.0.7:80\n")) << observer.told();
  leader.stop();
  EXPECT_TRUE(observer.says("nobody leads\n")) << observer.told();
  observer.stop();
}

TEST_F(Examples, MetricsArePrinted) {
  Example metrics({"metrics"});
  EXPECT_EQ(metrics.ended(), 0) << metrics.told();
  EXPECT_TRUE(mentions(metrics.out(), "leader_election_master_status{name=\"reports\"} ")) << metrics.told();
}

TEST_F(Examples, EveryStoreIsOpenedWithoutAServer) {
  if (!Example::is_built("every_store")) GTEST_SKIP() << "this build has not all stores";
  Example opens({"every_store"});
  const auto code = opens.ended();  // rediss:// comes last
  EXPECT_EQ(code, mentions(opens.err(), "this build has no TLS") ? 1 : 0) << opens.told();
}

TEST_F(Examples, TheDocumentOfTheReadmeElects) {
  if (!Example::is_built("any_store")) GTEST_SKIP() << "this build reads no JSON (nlohmann-json3-dev)";
  Example program({"any_store", TENURE_EXAMPLES_SOURCE "/reports.json"});
  EXPECT_TRUE(program.says("leads ")) << program.told();
  program.stop();
}

TEST(ExamplesOfOwnStores, TheCandidateOfTheQuickstartLeadsAndIsFollowed) {
  const Scratch scratch;
  const auto store = "TENURE_STORE=file://" + scratch.path().string();
  Example alice({"quickstart", "alice"}, {store});
  ASSERT_TRUE(alice.says(" alice leads ")) << alice.told();
  Example bob({"quickstart", "bob"}, {store});
  EXPECT_TRUE(bob.says(" bob follows alice\n")) << bob.told();
  alice.stop();
  EXPECT_TRUE(mentions(alice.out(), " alice ends stopped\n")) << alice.told();
  EXPECT_TRUE(bob.says(" bob leads ")) << bob.told();
  bob.stop();
}

TEST(ExamplesOfOwnStores, AProcessThatIsAloneLeadsAllShards) {
  Example shards({"shards", "memory:"});
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(shards.says("leading shard " + std::to_string(i) + ",")) << shards.told();
  shards.stop();
  EXPECT_TRUE(mentions(shards.out(), "no longer leading shard 11,")) << shards.told();
}

/// The document of examples/, whose `was` is now `is`.
void replace(std::string& document, const std::string& was, const std::string& is) {
  const auto at = document.find(was);
  ASSERT_NE(at, document.npos) << "shards.json has no " << was;
  document.replace(at, was.size(), is);
}

TEST(ExamplesOfOwnStores, ADocumentSharesElections) {
  if (!Example::is_built("configured_shards")) GTEST_SKIP() << "this build reads no JSON (nlohmann-json3-dev)";
  const Scratch scratch;
  auto document = contents(TENURE_EXAMPLES_SOURCE "/shards.json");
  replace(document, "redis://127.0.0.1:6379", "memory:");
  const auto path = scratch.file("shards.json", document);
  Example shards({"configured_shards", path});
  ASSERT_TRUE(eventually([&] { return shards.count("leading shard ") == 3; })) << "\"most\": 3; " << shards.told();
  shards.stop();
}

}  // namespace
}  // namespace tenure::test
