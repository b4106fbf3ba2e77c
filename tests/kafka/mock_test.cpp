// SPDX-License-Identifier: Apache-2.0
// Goal: the seat and its threads run without a broker, too. Method: librdkafka's mock cluster in this process. It
// proves little of the protocol (it fences and times differently from a broker): that stands in neli_test and
// kafka_test.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenure/kafka.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/observer.hpp>

#include "support.hpp"

namespace {
std::atomic<int> threads_left{-1};  ///< How many more this process may start; below zero: any number.
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// In place of the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  return real(thread, attributes, run, argument);
}
#endif

namespace tenure::kafka::test {
namespace {

class Cluster {
 public:
  explicit Cluster(const std::string& topic) {
    char why[512] = "";
    rk_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why));
    if (!rk_) throw std::runtime_error(why);
    cluster_.reset(rd_kafka_mock_cluster_new(rk_.get(), 1));
    if (!cluster_) throw std::runtime_error("no mock cluster");
    if (rd_kafka_mock_topic_create(cluster_.get(), topic.c_str(), 2, 1)) throw std::runtime_error("no topic");
  }
  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_.get()); }

 private:
  std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> rk_{nullptr, &rd_kafka_destroy};
  std::unique_ptr<rd_kafka_mock_cluster_t, decltype(&rd_kafka_mock_cluster_destroy)> cluster_{
      nullptr, &rd_kafka_mock_cluster_destroy};
};

TEST(KafkaMock, OneIsElectedIsSeenAndHandsOver) {
  // Handles leave their group after their seat is gone, in the background: until then it must answer.
  static const Cluster cluster("jobs.neli");
  Options o;
  o.brokers = cluster.brokers();
  o.group = "jobs";
  o.candidate = {"a", "a:1"};
  LeaderManager a(open(o), presets().fast);
  o.candidate = {"watcher", ""};
  Observer watcher(open(o), presets().fast);
  a.start();
  const auto first = a.await_leadership(patience);
  ASSERT_TRUE(first);
  const auto until = boot_clock().now() + patience;
  for (auto changes = watcher.changes(); !watcher.incumbent() && boot_clock().now() < until;)
    changes = watcher.await_change(changes, 1s);
  ASSERT_TRUE(watcher.incumbent());
  EXPECT_EQ(watcher.incumbent()->token, *first);
  EXPECT_FALSE(a.await_ended(2 * presets().fast.renew)) << "it renews";
  EXPECT_TRUE(a.leadership().is_leader());
  a.stop();
  EXPECT_FALSE(a.leadership().is_leader());

  o.candidate = {"b", "b:1"};
  LeaderManager b(open(o), presets().fast);
  b.start();
  const auto second = b.await_leadership(patience);
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
}

// ---- what runs out ----

Options nobody_there() {
  Options o;
  o.brokers = "127.0.0.1:1";
  o.group = "jobs";
  return o;
}

TEST(KafkaThreads, OneThatCannotBeStartedIsToldByOpen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a pthread_create of its own";
#endif
  int refused = 0;
  for (int left = 0;; ++left) {
    threads_left = left;
    try {
      const auto seat = open(nobody_there());
      const auto sight = seat->observe(within(50ms));
      threads_left = -1;
      EXPECT_TRUE(std::holds_alternative<Unknown>(sight));
      break;
    } catch (const std::exception& e) {
      threads_left = -1;
      ++refused;
    }
    ASSERT_LT(left, 20);
  }
  EXPECT_GE(refused, 2) << "of the two threads of a seat neither was refused";
}

/// Of the threads of ours: their names, and those signals of the program's that they would take.
std::map<std::string, std::vector<int>> open_signals() {
  std::map<std::string, std::vector<int>> out;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm"), status(task.path() / "status");
    std::string name, line;
    std::getline(comm, name);
    while (std::getline(status, line) && !line.starts_with("SigBlk:")) {
    }
    if (!name.starts_with("tenure-k") || line.empty()) continue;
    const auto blocked = std::stoull(line.substr(7), nullptr, 16);
    auto& taken = out[name];
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM})
      if (!(blocked >> (signal - 1) & 1)) taken.push_back(signal);
  }
  return out;
}

TEST(KafkaThreads, BlockTheProgramsSignals) {
  const auto seat = open(nobody_there());
  auto found = open_signals();
  for (const auto until = within(patience); found.size() < 3 && !until.passed(); found = open_signals())
    seat->observe(within(10ms));  // a thread tells its name after it was started
  const std::vector<int> none;
  EXPECT_EQ(found, (decltype(found){{"tenure-kafka", none}, {"tenure-k-read", none}, {"tenure-k-close", none}}));
}

TEST(KafkaThreads, AChildOfForkHasAllOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer starts no thread in such a child";
#endif
  const auto before = open(nobody_there());
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto seat = open(nobody_there());
    for (const auto until = within(5s); open_signals().size() < 3 && !until.passed();) seat->observe(within(10ms));
    std::_Exit(open_signals().size() < 3 ? 1 : 0);  // without the one that closes, its handles never leave a group
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(KafkaMock, ACallThatItsCallerEndsSaysSo) {
  const auto seat = open(nobody_there());
  std::stop_source stop;
  stop.request_stop();
  const auto answer = seat->acquire({boot_clock(), boot_clock().now() + patience, stop.get_token()});
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  EXPECT_EQ(std::get<Unknown>(answer).error.message.find("limit"), std::string::npos);
}

/// From here on every open, accept and socket fails.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::runtime_error("setrlimit");
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// 0: as it should be.
int hand_back_without_descriptors() {
  const Cluster cluster("jobs.neli");
  Options o;
  o.brokers = cluster.brokers();
  o.group = "jobs";
  Candidate a(o);
  const auto first = a.campaign();
  if (!first) return 2;
  {
    const NoMoreDescriptors none;
    a.release();
    for (const auto until = within(3s); !until.passed();)
      if (std::holds_alternative<Granted>(a.acquire())) return 3;
  }
  const auto next = a.campaign();
  if (!next || *next <= *first) return 4;
  return 0;
}

TEST(KafkaDescriptors, ALeaderWithoutAnyHandsBackAndComesBack) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: what it made at first use counts
  EXPECT_EXIT(std::_Exit(hand_back_without_descriptors()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenure::kafka::test
