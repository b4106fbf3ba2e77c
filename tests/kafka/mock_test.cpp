// SPDX-License-Identifier: Apache-2.0
// Goal: the backend and its threads run without a broker, too. Method: librdkafka's mock cluster in this process. It
// proves little about the protocol, because it fences and times differently from a broker. The tests of Neli and
// kafka_test prove that.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <tenure/kafka.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/observer.hpp>

#include "eventually.hpp"
#include "in_child.hpp"
#include "in_time.hpp"
#include "mock_cluster.hpp"
#include "no_descriptors.hpp"
#include "open_signals.hpp"
#include "support.hpp"

namespace {
std::atomic<int> threads_left{-1};  ///< How many more this process may start; below zero: any number.
std::atomic<bool> commits_refused{false};
std::atomic<int> unsubscribed{0}, closed_subscribed{0}, assigned_closing{0};
std::atomic<rd_kafka_t*> closing{nullptr};
std::atomic<int> handles{0};  ///< of the client library that stand
std::atomic<int> members_destroyed{0};
std::atomic<bool> readers_held{false}, reader_waits{false};  ///< in the destruction of their handle
}  // namespace

/// Replaces the function of the client library.
extern "C" rd_kafka_resp_err_t rd_kafka_commit_queue(
    rd_kafka_t* rk, const rd_kafka_topic_partition_list_t* offsets, rd_kafka_queue_t* queue,
    void (*done)(rd_kafka_t*, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t*, void*), void* opaque) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_commit_queue)>(::dlsym(RTLD_NEXT, "rd_kafka_commit_queue"));
  return commits_refused ? RD_KAFKA_RESP_ERR__STATE : real(rk, offsets, queue, done, opaque);
}
extern "C" rd_kafka_t* rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t* conf, char* why, size_t size) {
  static const auto real = reinterpret_cast<decltype(&rd_kafka_new)>(::dlsym(RTLD_NEXT, "rd_kafka_new"));
  auto* const made = real(type, conf, why, size);
  if (made) ++handles;
  return made;
}
extern "C" void rd_kafka_destroy_flags(rd_kafka_t* rk, int flags) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_destroy_flags)>(::dlsym(RTLD_NEXT, "rd_kafka_destroy_flags"));
  char thread[16] = "";
  ::pthread_getname_np(::pthread_self(), thread, sizeof thread);
  if (readers_held && std::string(thread) == "tenure-k-read") {
    reader_waits = true;
    readers_held.wait(true);
  }
  const bool member = !std::string_view(rd_kafka_name(rk)).starts_with("tenure.observer");
  real(rk, flags);
  if (member) ++members_destroyed;
  --handles;
}
extern "C" rd_kafka_resp_err_t rd_kafka_unsubscribe(rd_kafka_t* rk) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_unsubscribe)>(::dlsym(RTLD_NEXT, "rd_kafka_unsubscribe"));
  ++unsubscribed;
  return real(rk);
}
extern "C" rd_kafka_error_t* rd_kafka_consumer_close_queue(rd_kafka_t* rk, rd_kafka_queue_t* queue) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_consumer_close_queue)>(::dlsym(RTLD_NEXT, "rd_kafka_consumer_close_queue"));
  rd_kafka_topic_partition_list_t* topics = nullptr;
  if (rd_kafka_subscription(rk, &topics) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (topics->cnt > 0) ++closed_subscribed;
    rd_kafka_topic_partition_list_destroy(topics);
  }
  closing = rk;
  return real(rk, queue);
}
extern "C" rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t* rk, const rd_kafka_topic_partition_list_t* partitions) {
  static const auto real = reinterpret_cast<decltype(&rd_kafka_assign)>(::dlsym(RTLD_NEXT, "rd_kafka_assign"));
  if (rk == closing) ++assigned_closing;
  return real(rk, partitions);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Replaces the function of the C library.
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

using tenure::test::eventually;
using tenure::test::in_child;

Options jobs_at(const std::string& brokers) {
  Options o;
  o.brokers = brokers;
  o.group = "jobs";
  return o;
}

TEST(KafkaMock, ACandidateIsElectedIsSeenAndHandsOver) {
  // Handles leave their group after their backend is gone, in the background: until then it must answer.
  static const Cluster cluster("jobs.neli");
  auto o = jobs_at(cluster.brokers());
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

TEST(KafkaMock, ACommitThatTheClientRefusesIsReportedAtOnce) {
  static const Cluster cluster("jobs.neli");
  auto o = jobs_at(cluster.brokers());
  Candidate a(o);
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  commits_refused = true;
  const auto answer = a.renew(*token);
  commits_refused = false;
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  EXPECT_TRUE(mentions(std::get<Unknown>(answer).error.message, "_STATE: offset commit"))
      << std::get<Unknown>(answer).error.message;
}

/// librdkafka forgets what it is told while its group ends, and rd_kafka_assign() waits for its answer without a limit.
TEST(KafkaMock, AHandleUnsubscribesAndAnswersEveryRebalanceBeforeItIsClosed) {
  static const Cluster cluster("jobs.neli");
  auto o = jobs_at(cluster.brokers());
  Candidate a(o);
  ASSERT_TRUE(a.campaign());
  const int unsubscribed_before = unsubscribed, destroyed_before = members_destroyed;
  closed_subscribed = assigned_closing = 0;
  EXPECT_FALSE(a.release());
  EXPECT_EQ(unsubscribed - unsubscribed_before, 1);
  EXPECT_EQ(closed_subscribed, 0) << "it leaves when it is closed, not at once";
  EXPECT_TRUE(eventually([&] { return members_destroyed > destroyed_before; })) << "it is not closed";
  EXPECT_EQ(assigned_closing, 0);
}

TEST(KafkaMock, ABackendThatEndsSlowlyHoldsUpNoOther) {
  static const Cluster cluster("jobs.neli");
  auto o = jobs_at(cluster.brokers());
  Candidate a(o);
  ASSERT_TRUE(a.campaign());
  o.brokers = "127.0.0.1:1";
  auto slow = open(o);
  slow->observe(within(50ms));  // and goes on reading: its handle ends with that thread
  readers_held = true;
  slow.reset();
  EXPECT_TRUE(eventually([] { return reader_waits.load(); }));
  const int before = members_destroyed;
  EXPECT_FALSE(a.release());
  EXPECT_TRUE(eventually([&] { return members_destroyed > before; })) << "the member's handle is not closed";
  readers_held = false;
  readers_held.notify_all();
}

// ---- what runs out ----

Options nobody_there() { return jobs_at("127.0.0.1:1"); }

TEST(KafkaThreads, OpenReportsAThreadThatCannotBeStarted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a pthread_create of its own";
#endif
  int refused = 0;
  for (int left = 0;; ++left) {
    threads_left = left;
    try {
      const auto backend = open(nobody_there());
      const auto sight = backend->observe(within(50ms));
      threads_left = -1;
      EXPECT_TRUE(std::holds_alternative<Unknown>(sight));
      break;
    } catch (const std::exception& e) {
      threads_left = -1;
      ++refused;
    }
    ASSERT_LT(left, 20);
  }
  EXPECT_GE(refused, 2) << "of the two threads of a backend neither was refused";
}

TEST(KafkaThreads, ARequestToStepDownReportsAThreadThatCannotBeStarted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a pthread_create of its own";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: one thread is made at first use
  const auto refused = [] {
    const auto backend = open(nobody_there());
    threads_left = 0;
    const auto error = backend->request_step_down("me", "a test", within(10s));
    std::_Exit(error && error->fault == Fault::unreachable ? 0 : 1);
  };
  EXPECT_EXIT(refused(), testing::ExitedWithCode(0), "");
}

TEST(KafkaThreads, ARequestToStepDownEndsByItsLimitThoughASourceOfTokensBlocks) {
  std::atomic<bool> held{true};
  auto o = nobody_there();
  o.properties = {{"security.protocol", "sasl_plaintext"}, {"sasl.mechanism", "OAUTHBEARER"}};
  o.oauth_token = [&held]() -> Result<OauthToken> {
    for (const auto until = within(1s); held && !until.passed();) wait_out(within(10ms));
    return Error{Fault::forbidden, "it is over"};
  };
  o.log = no_log;
  const auto backend = open(o);
  tenure::test::expect_in_time("request_step_down", 200ms, [&](const Limit& limit) {
    EXPECT_TRUE(backend->request_step_down("me", "a test", limit)) << "nobody is there";
  });
  held = false;
}

auto open_signals() { return tenure::test::open_signals("tenure-k"); }

TEST(KafkaThreads, BlockTheProgramsSignals) {
  const auto backend = open(nobody_there());
  auto found = open_signals();
  for (const auto until = within(patience); found.size() < 3 && !until.passed(); found = open_signals())
    backend->observe(within(10ms));  // a thread tells its name after it was started
  const std::vector<int> none;
  EXPECT_EQ(found, (decltype(found){{"tenure-kafka", none}, {"tenure-k-read", none}, {"tenure-k-close", none}}));
}

TEST(KafkaThreads, AChildOfForkHasAReaperAndThreadsOfItsOwn) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "such a child's threads get stacks that the sanitizer takes for the parent's, or none at all";
#endif
  const auto before = open(nobody_there());
  in_child([] {
    const auto backend = open(nobody_there());
    for (const auto until = within(patience); open_signals().size() < 3 && !until.passed();)
      backend->observe(within(10ms));
    return open_signals().size() == 3;  // without the one that closes, its handles never leave a group
  });
}

TEST(KafkaThreads, AnInheritedBackendDoesNothingInAChildOfFork) {
  auto backend = open(nobody_there());
  backend->observe(within(10ms));
  in_child([&] {
    const auto says = [](const Error& e) { return e.fault == Fault::misconfigured && mentions(e.message, "forked"); };
    const auto said = [&](const auto& answer) {
      const auto* unknown = std::get_if<Unknown>(&answer);
      return unknown && says(unknown->error);
    };
    const auto by = within(patience);
    const auto released = backend->release(by);
    const bool all = said(backend->acquire(by)) && said(backend->renew(Token{1}, by)) && released && says(*released) &&
                     said(backend->observe(by));
    backend->await_change(Vacant{}, by);
    backend.reset();
    return all;
  });
}

std::shared_ptr<Backend> outlives_statics;
int handles_before = 0;

TEST(KafkaThreads, ABackendThatEndsAfterMainLeavesNothingBehind) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // At the end these run from the last to the first: that of the library's, which open() adds, before both.
  const auto exits = [] {
    std::atexit([] { std::_Exit(handles == handles_before ? 0 : 1); });
    std::atexit([] { outlives_statics.reset(); });
    handles_before = handles;
    outlives_statics = open(nobody_there());
    outlives_statics->observe(within(50ms));  // and goes on reading
    std::exit(2);
  };
  EXPECT_EXIT(exits(), testing::ExitedWithCode(0), "");
}

TEST(KafkaMock, ACallEndedByItsCallerSaysSo) {
  const auto backend = open(nobody_there());
  std::stop_source stop;
  stop.request_stop();
  const auto answer = backend->acquire({boot_clock(), boot_clock().now() + patience, stop.get_token()});
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  EXPECT_EQ(std::get<Unknown>(answer).error.message.find("limit"), std::string::npos);
}

/// Returns 0 if all is as it should be.
int hand_back_without_descriptors() {
  const Cluster cluster("jobs.neli");
  auto o = jobs_at(cluster.brokers());
  Candidate a(o);
  const auto first = a.campaign();
  if (!first) return 2;
  {
    const tenure::test::NoDescriptors none;
    a.release();
    for (const auto until = within(3s); !until.passed();)
      if (std::holds_alternative<Granted>(a.acquire())) return 3;
  }
  const auto next = a.campaign();
  if (!next || *next <= *first) return 4;
  return 0;
}

TEST(KafkaDescriptors, ALeaderWithoutAnyHandsBackAndComesBack) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own: what it made at first use counts
  EXPECT_EXIT(std::_Exit(hand_back_without_descriptors()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenure::kafka::test
