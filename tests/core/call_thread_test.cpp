// SPDX-License-Identifier: Apache-2.0
// Goal: whatever a client library does, its caller is back by the limit. Method: calls that block in every way that
// such libraries block, on sockets whose other end stays silent.
#include <tenure/call_thread.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <new>
#include <tenure/manual_clock.hpp>
#include <tenure/wait.hpp>
#include <thread>

namespace tenure {
namespace {

using namespace std::chrono_literals;

Limit within(Clock::Duration d, std::stop_token stop = {}) { return {boot_clock(), boot_clock().now() + d, stop}; }

/// How late: the machine may be busy, but what core calls wedged is this.
constexpr auto wedged = 50ms;

/// A connection whose server never says a word, unless told to.
struct Silence {
  Silence() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  ~Silence() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2]{};
};

int read_a_byte(int descriptor) {
  char byte = 0;
  return static_cast<int>(::read(descriptor, &byte, 1));
}

/// With a connection that is established a call runs on its caller's thread, else on the other one.
class CallThreadEither : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return;
    ASSERT_TRUE(thread.call([s = silence](CallThread::Socket& socket) { socket.use(s->ends[0]); }, within(5s)));
  }
  const std::shared_ptr<Silence> silence = std::make_shared<Silence>();
  CallThread thread;
};
INSTANTIATE_TEST_SUITE_P(, CallThreadEither, testing::Bool(),
                         [](const auto& p) { return p.param ? "on_its_callers_thread" : "on_its_own"; });

TEST(CallThread, RunsOnOneThreadOfItsOwnAndHandsBackWhatItReturned) {
  CallThread thread;
  const auto first = thread.ask([](auto&) { return std::this_thread::get_id(); }, within(5s));
  const auto second = thread.ask([](auto&) { return std::this_thread::get_id(); }, within(5s));
  ASSERT_TRUE(first);
  EXPECT_NE(*first, std::this_thread::get_id());
  EXPECT_EQ(first, second);
}

TEST_P(CallThreadEither, AReadThatHangsEndsByTheLimit) {
  const auto began = boot_clock().now();
  const auto got = thread.ask(
      [silence = silence](CallThread::Socket& socket) {
        socket.use(silence->ends[0]);
        return read_a_byte(silence->ends[0]);
      },
      within(30ms));
  EXPECT_GE(boot_clock().now() - began, 30ms);
  EXPECT_LT(boot_clock().now() - began, 30ms + wedged);
  EXPECT_EQ(got, 0) << "the socket was shut down, so the read saw the end of the stream";
}

TEST_P(CallThreadEither, AReadThatHangsEndsWhenItsStopIsRequested) {
  std::stop_source stop;
  std::promise<void> reading;
  std::thread stopper([&] {
    reading.get_future().wait();
    stop.request_stop();
  });
  const auto got = thread.ask(
      [silence = silence, &reading](CallThread::Socket& socket) {
        socket.use(silence->ends[0]);
        reading.set_value();
        return read_a_byte(silence->ends[0]);
      },
      within(1h, stop.get_token()));
  stopper.join();
  EXPECT_EQ(got, 0);
}

TEST(CallThread, AConnectThatOutlivesItsCallServesTheNext) {
  const auto silence = std::make_shared<Silence>();
  const auto connected = std::make_shared<std::promise<void>>();
  const auto go_on = std::make_shared<std::promise<bool>>();
  CallThread thread;
  EXPECT_FALSE(thread.call(
      [=, may_connect = connected->get_future().share()](CallThread::Socket& socket) {
        may_connect.wait();
        go_on->set_value(socket.use(silence->ends[0]));
      },
      within(10ms)));
  connected->set_value();
  EXPECT_FALSE(go_on->get_future().get());
  ASSERT_EQ(::write(silence->ends[1], "x", 1), 1);
  EXPECT_EQ(thread.ask([silence](auto&) { return read_a_byte(silence->ends[0]); }, within(5s)), 1);
}

TEST(CallThread, ABodyThatTalksOnAfterALateConnectIsCutByTheNextCall) {
  const auto silence = std::make_shared<Silence>();
  const auto connected = std::make_shared<std::promise<void>>();
  const auto used = std::make_shared<std::promise<void>>();
  const auto read = std::make_shared<std::promise<int>>();
  CallThread thread;
  EXPECT_FALSE(thread.call(
      [=, may_connect = connected->get_future().share()](CallThread::Socket& socket) {
        may_connect.wait();
        socket.use(silence->ends[0]);
        used->set_value();
        read->set_value(read_a_byte(silence->ends[0]));
      },
      within(10ms)));
  connected->set_value();
  used->get_future().wait();
  EXPECT_FALSE(thread.call([](auto&) {}, within(10ms)));
  EXPECT_EQ(read->get_future().get(), 0);
}

TEST(CallThread, WhatCannotBeEndedHoldsUpLaterCallsOnlyToTheirLimits) {
  const auto resolved = std::make_shared<std::promise<void>>();
  CallThread thread;
  const auto began = boot_clock().now();
  EXPECT_FALSE(thread.call([hang = resolved->get_future().share()](auto&) { hang.wait(); }, within(20ms)));
  std::atomic<bool> ran{};
  EXPECT_FALSE(thread.call([&ran](auto&) { ran = true; }, within(20ms)));
  EXPECT_LT(boot_clock().now() - began, 40ms + wedged);
  EXPECT_FALSE(ran);
  resolved->set_value();
  EXPECT_TRUE(thread.call([&ran](auto&) { ran = true; }, within(5s)));
  EXPECT_TRUE(ran);
}

TEST_P(CallThreadEither, AWaitEndsAtTheLimitAndItsSocketLivesOn) {
  const auto waited = thread.ask(
      [silence = silence](CallThread::Socket& socket) {
        socket.use(silence->ends[0]);
        return socket.wait();
      },
      within(100ms));
  EXPECT_EQ(waited, false);
  ASSERT_EQ(::write(silence->ends[1], "x", 1), 1);
  EXPECT_EQ(thread.ask([](CallThread::Socket& socket) { return socket.wait(); }, within(5s)), true);
  EXPECT_EQ(thread.ask([silence = silence](auto&) { return read_a_byte(silence->ends[0]); }, within(5s)), 1);
}

TEST_P(CallThreadEither, AWaitAfterItsEndReturnsAtOnce) {
  const auto waits = thread.ask(
      [silence = silence](CallThread::Socket& socket) {
        socket.use(silence->ends[0]);
        return std::pair(socket.wait(), socket.wait());
      },
      within(100ms));
  EXPECT_EQ(waits, std::pair(false, false));
}

TEST_P(CallThreadEither, ABodyThatTalksOnAfterItsWaitEndedIsCut) {
  const auto used = std::make_shared<std::promise<void>>();
  const auto read = std::make_shared<std::promise<int>>();
  std::stop_source stop;
  std::jthread stopper([&] {
    used->get_future().wait();
    stop.request_stop();
  });
  thread.call(
      [=, silence = silence](CallThread::Socket& socket) {
        socket.use(silence->ends[0]);
        used->set_value();
        socket.wait();
        read->set_value(read_a_byte(silence->ends[0]));
      },
      within(10s, stop.get_token()));
  EXPECT_EQ(read->get_future().get(), 0);
}

TEST(CallThread, TheSocketMayBeClosedByItsOwnerMeanwhile) {
  auto silence = std::make_shared<Silence>();
  CallThread thread;
  EXPECT_TRUE(thread.call([silence](CallThread::Socket& socket) { socket.use(silence->ends[0]); }, within(5s)));
  silence.reset();
  const Silence other;  // Most likely with the same numbers.
  const auto resolved = std::make_shared<std::promise<void>>();
  EXPECT_FALSE(thread.call(
      [hang = resolved->get_future().share()](CallThread::Socket& socket) {
        if (socket.may_connect()) hang.wait();
      },
      within(1ms)));
  resolved->set_value();
  EXPECT_TRUE(thread.call([](CallThread::Socket& socket) { socket.use(-1); }, within(5s)));
  ASSERT_EQ(::write(other.ends[1], "x", 1), 1);
  EXPECT_EQ(read_a_byte(other.ends[0]), 1) << "another socket was shut down in its place";
}

TEST_P(CallThreadEither, AConnectNeverHoldsItsCallerUp) {
  const auto resolved = std::make_shared<std::promise<void>>();
  const auto began = boot_clock().now();
  EXPECT_FALSE(thread.call(
      [hang = resolved->get_future().share()](CallThread::Socket& socket) {
        socket.use(-1);
        if (!socket.may_connect()) return;
        hang.wait();
      },
      within(20ms)));
  EXPECT_LT(boot_clock().now() - began, 20ms + wedged);
  resolved->set_value();
  EXPECT_TRUE(thread.call([](auto&) {}, within(5s)));
}

TEST(CallThread, WithAConnectionACallRunsOnItsCallersThread) {
  const auto silence = std::make_shared<Silence>();
  CallThread thread;
  const auto id = [](auto&) { return std::this_thread::get_id(); };
  const auto connects = [silence](CallThread::Socket& socket) {
    socket.use(silence->ends[0]);
    return std::this_thread::get_id();
  };
  EXPECT_NE(thread.ask(connects, within(5s)), std::this_thread::get_id());
  EXPECT_EQ(thread.ask(id, within(5s)), std::this_thread::get_id());
  EXPECT_TRUE(thread.call([](CallThread::Socket& socket) { socket.use(-1); }, within(5s)));
  EXPECT_NE(thread.ask(id, within(5s)), std::this_thread::get_id());
}

TEST(CallThread, AStopThatComesAfterTheCallHasReturnedDoesNotHarmTheConnection) {
  const auto silence = std::make_shared<Silence>();
  CallThread thread;
  std::stop_source stop;
  ASSERT_TRUE(thread.call([silence](CallThread::Socket& socket) { socket.use(silence->ends[0]); }, within(5s)));
  ASSERT_TRUE(thread.call([](auto&) {}, within(10ms, stop.get_token())));
  stop.request_stop();
  wait_out(within(20ms));
  ASSERT_EQ(::write(silence->ends[1], "x", 1), 1);
  EXPECT_EQ(thread.ask([silence](auto&) { return read_a_byte(silence->ends[0]); }, within(5s)), 1);
}

TEST(CallThread, NothingIsBegunAfterTheLimit) {
  CallThread thread;
  std::atomic<bool> ran{};
  EXPECT_FALSE(thread.call([&ran](auto&) { ran = true; }, within(-1ms)));
  EXPECT_TRUE(thread.call([](auto&) {}, within(5s)));
  EXPECT_FALSE(ran);
}

TEST(CallThread, ItsDestructionEndsWhatRuns) {
  const auto silence = std::make_shared<Silence>();
  const auto read = std::make_shared<std::promise<int>>();
  const auto resolved = std::make_shared<std::promise<void>>();
  const auto began = boot_clock().now();
  {
    CallThread thread;
    EXPECT_FALSE(thread.call([hang = resolved->get_future().share()](auto&) { hang.wait(); }, within(1ms)));
  }
  EXPECT_LT(boot_clock().now() - began, 1ms + wedged);
  resolved->set_value();
}

TEST_P(CallThreadEither, ABrokenPipeKillsNobody) {
  ::shutdown(silence->ends[0], SHUT_RDWR);
  EXPECT_EQ(thread.ask([silence = silence](auto&) { return ::write(silence->ends[0], "x", 1); }, within(5s)), -1);
  EXPECT_TRUE(thread.call([](auto&) {}, within(5s)));
}

TEST(CallThread, TheLimitsClockMayBeGoneAfterTheCall) {
  const auto silence = std::make_shared<Silence>();
  CallThread thread;
  {
    ManualClock clock;
    const Limit limit{clock, clock.now() + 1h, {}};
    EXPECT_TRUE(thread.call([silence](CallThread::Socket& socket) { socket.use(silence->ends[0]); }, limit));
    EXPECT_TRUE(thread.call([](auto&) {}, limit));
    EXPECT_EQ(clock.next_alarm(), Clock::Time::max()) << "nobody waits on it any more";
  }
  EXPECT_TRUE(thread.call([](auto&) {}, within(5s)));
}

TEST(CallThread, AfterABodyThatThrewAllTheSameTheNextOneRuns) {
  const auto silence = std::make_shared<Silence>();
  CallThread thread;
  ASSERT_TRUE(thread.call([silence](CallThread::Socket& socket) { socket.use(silence->ends[0]); }, within(5s)));
  EXPECT_THROW(thread.call([](auto&) { throw std::bad_alloc(); }, within(5s)), std::bad_alloc);
  EXPECT_TRUE(thread.call([](auto&) {}, within(100ms)));
}

TEST(CallThread, AForkedChildMayDestroyIt) {
  auto thread = std::make_unique<CallThread>();
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(10);
    thread.reset();
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "it hung, and the alarm ended it";
}

TEST(CallThread, CountsByTheCallersClock) {
  ManualClock clock;
  CallThread thread;
  const auto resolved = std::make_shared<std::promise<void>>();
  auto result = std::async(std::launch::async, [&] {
    return thread.call([hang = resolved->get_future().share()](auto&) { hang.wait(); }, {clock, clock.now() + 10s, {}});
  });
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(10s);
  EXPECT_FALSE(result.get());
  resolved->set_value();
}

}  // namespace
}  // namespace tenure
