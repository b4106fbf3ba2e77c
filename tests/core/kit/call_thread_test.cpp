// SPDX-License-Identifier: Apache-2.0
// Goal: whatever a client library does, its caller is back by the limit, and nothing that was begun is thrown away.
// Method: connects and calls that block in every way that such libraries block, on sockets whose other end stays
// silent.
#include <tenure/kit/call_thread.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <tenure/conditional_store.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/manual_clock.hpp>
#include <thread>
#include <vector>

#include "eventually.hpp"
#include "in_child.hpp"
#include "no_descriptors.hpp"
#include "within.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::NoDescriptors;
using test::within;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What a call returns whose limit of 30 ms passes after `reached`, however busy this machine is.
template <class Call>
auto after_its_limit(Call call, std::future<void> reached = {}) {
  ManualClock clock;
  auto result = std::async(std::launch::async, std::move(call), Limit{clock, clock.now() + 30ms, {}});
  if (reached.valid()) reached.wait();
  EXPECT_TRUE(clock.await_parked(1));
  clock.advance(30ms - 1ns);
  EXPECT_TRUE(clock.await_parked(1)) << "it left before its limit";
  clock.advance(1ns);
  return result.get();
}

/// The same of a call that is in the midst of its body when the limit passes.
template <class Body>
auto cut_off(CallThread& thread, Body body) {
  std::promise<void> begun;
  return after_its_limit(
      [&](const Limit& limit) {
        return thread.ask(
            [&begun, body](CallThread::Socket& socket) {
              begun.set_value();
              return body(socket);
            },
            limit);
      },
      begun.get_future());
}

/// What must be over in some ms of real time is tried until this machine has them.
constexpr auto in_time = "not once in time";

/// A connection whose server never says a word, unless told to.
struct Silence {
  Silence() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  ~Silence() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void say(char c) const { EXPECT_EQ(::send(ends[1], &c, 1, MSG_NOSIGNAL), 1); }
  int ends[2]{};
};

/// How many bytes.
int read_a_byte(int descriptor) {
  char byte = 0;
  return static_cast<int>(::read(descriptor, &byte, 1));
}

/// Connects to a Silence, in the way that a test demands.
class Line final : public CallThread::Connection {
 public:
  using Way = std::function<std::optional<Error>(CallThread::Attempt&, const Silence&)>;
  explicit Line(Way way = {}) : way_(std::move(way)) {}

  std::optional<Error> connect(CallThread::Attempt& attempt) override {
    {
      const std::lock_guard lock(mutex_);
      attempts_.push_back(boot_clock().now());
    }
    auto silence = std::make_shared<Silence>();
    auto error = way_ ? way_(attempt, *silence) : std::nullopt;
    if (error) return error;
    if (!attempt.step("server (here)", "greeting", silence->ends[0])) return Error{Fault::unreachable, "ended"};
    const std::lock_guard lock(mutex_);
    silence_ = silence;
    return std::nullopt;
  }
  bool stands() override {
    const std::lock_guard lock(mutex_);
    return silence_ != nullptr;
  }
  bool settle(Exchange& exchange) override {
    while (owed_ > 0) {
      const auto late = answer(exchange);
      if (!late && late.error().fault == Fault::timed_out) return false;
    }
    return true;
  }
  /// Asks a question whose answer is one byte.
  Result<char> ask(Exchange& exchange) {
    ++owed_;
    return answer(exchange);
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    silence_.reset();
    owed_ = 0;
  }
  std::shared_ptr<Silence> silence() const {
    const std::lock_guard lock(mutex_);
    return silence_;
  }
  std::vector<Clock::Time> attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }

 private:
  Result<char> answer(Exchange& exchange) {
    while (!exchange.over()) {
      char byte = 0;
      const auto got = ::recv(silence()->ends[0], &byte, 1, MSG_DONTWAIT);
      if (got > 0) return --owed_, byte;
      if (got == 0) return drop(), Error{Fault::unreachable, "the stream ended"};
      exchange.wait(POLLIN);
    }
    return exchange.no_answer();
  }

  const Way way_;
  mutable std::mutex mutex_;
  std::shared_ptr<Silence> silence_;
  std::vector<Clock::Time> attempts_;
  int owed_{};
};

/// It says that it resolves, and goes on when that is over.
std::shared_ptr<Line> line_that_resolves(std::promise<void>& resolving, std::promise<void>& resolved) {
  return std::make_shared<Line>([&resolving, hang = resolved.get_future().share()](auto& attempt, auto&) {
    attempt.step("server (there)", "resolving", -1);
    resolving.set_value();
    hang.wait();
    return std::optional<Error>();
  });
}

struct CallThreadTest : testing::Test {
  std::shared_ptr<Line> line = std::make_shared<Line>();
  CallThread thread{line};

  std::optional<Error> connect() {
    return thread.call([](auto&) {}, within(5s));
  }
  /// What a call that reads a byte got; an Error if it was not back by its limit.
  Result<int> read(const Limit& limit) {
    return thread.ask([line = line](auto&) -> Result<int> { return read_a_byte(line->silence()->ends[0]); }, limit);
  }
  /// The same, which nobody answers.
  Result<int> late_read() {
    return cut_off(thread, [line = line](auto&) -> Result<int> { return read_a_byte(line->silence()->ends[0]); });
  }
  /// A call that has to wait until its limit.
  std::optional<Error> late() {
    return after_its_limit([&](const Limit& limit) { return thread.call([](auto&) {}, limit); });
  }
  Result<bool> await(const Limit& limit) {
    return thread.ask([](CallThread::Socket& socket) -> Result<bool> { return socket.wait(); }, limit);
  }
};

/// Connected.
template <class Test>
struct ThatStands : Test {
  void SetUp() override { ASSERT_FALSE(this->connect()); }
};

using CallThreadThatStands = ThatStands<CallThreadTest>;

template <class T>
bool is(const Result<T>& result, T value) {
  return result && *result == value;
}
template <class T>
std::string trouble(const Result<T>& result) {
  return result ? "none" : result.error().message;
}

TEST_F(CallThreadTest, ConnectsAndAsksOnOneThreadOfItsOwn) {
  const auto id = [](auto&) -> Result<std::thread::id> { return std::this_thread::get_id(); };
  const auto first = thread.ask(id, within(5s));
  const auto second = thread.ask(id, within(5s));
  ASSERT_TRUE(first) << trouble(first);
  EXPECT_FALSE(is(first, std::this_thread::get_id()));
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(line->attempts().size(), 1u);
}

// ---- connecting ----

TEST(CallThreadConnecting, AConnectOutlivesTheCallsThatWaitForItAndIsMadeOnce) {
  std::promise<void> resolving, resolved;
  const auto line = line_that_resolves(resolving, resolved);
  CallThread thread(line);
  std::atomic<int> ran{};
  const auto call = [&](const Limit& limit) { return thread.call([&ran](auto&) { ++ran; }, limit); };
  for (int i = 0; i < 3; ++i) {
    const auto error = after_its_limit(call, i == 0 ? resolving.get_future() : std::future<void>());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->fault, Fault::timed_out);
    for (const auto* part : {"server (there)", "still connecting", "resolving", "this call had 30 ms", "Timing::call"})
      EXPECT_THAT(error->message, HasSubstr(part));
  }
  resolved.set_value();
  EXPECT_FALSE(call(within(5s)));
  EXPECT_EQ(ran, 1) << "what was not begun by its limit is never begun";
  EXPECT_EQ(line->attempts().size(), 1u);
}

TEST(CallThreadConnecting, AStepThatTakesTooLongIsEndedAndGivenMoreTimeLater) {
  std::vector<Clock::Duration> patience;
  const auto slow = std::make_shared<Line>([&](auto& attempt, const Silence& silence) -> std::optional<Error> {
    patience.push_back(attempt.patience());
    attempt.step("server (there)", "greeting", silence.ends[0]);
    if (patience.size() == 5) return std::nullopt;
    read_a_byte(silence.ends[0]);
    return Error{Fault::unreachable, "the connection broke"};
  });
  CallThread thread(slow, 20ms);
  for (int i = 0; i < 4; ++i) {
    const auto error = thread.call([](auto&) {}, within(5s));
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message, HasSubstr("server (there): greeting took longer than"));
  }
  EXPECT_FALSE(thread.call([](auto&) {}, within(5s)));
  slow->drop();
  patience.resize(4);
  EXPECT_FALSE(thread.call([](auto&) {}, within(5s)));
  EXPECT_EQ(patience, (std::vector<Clock::Duration>{20ms, 40ms, 80ms, 80ms, 20ms}));
}

TEST(CallThreadConnecting, OfSeveralServersEachMayTakeSoLongAndNoLonger) {
  const auto slow = std::make_shared<Line>([](auto& attempt, const Silence&) -> std::optional<Error> {
    for (const auto* server : {"server (first)", "server (second)"}) {
      const Silence silence;
      attempt.step(server, "resolving, TCP");
      attempt.step(server, "greeting", silence.ends[0]);
      read_a_byte(silence.ends[0]);
    }
    attempt.step("server (third)", "resolving, TCP");
    return Error{Fault::unreachable, "server (third): refused"};
  });
  CallThread thread(slow, 20ms);
  const auto error = thread.call([](auto&) {}, within(5s));
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("server (second): greeting took longer than"));
}

TEST(CallThreadConnecting, AFailureIsReturnedAndTheNextAttemptIsBackedOff) {
  const auto line = std::make_shared<Line>([](auto&, auto&) {
    return std::optional(Error{Fault::forbidden, "wrong password"});
  });
  CallThread thread(line);
  ManualClock stands;
  for (int i = 0; i < 14; ++i)
    EXPECT_EQ(thread.call([](auto&) {}, {stands, stands.now() + 80ms, {}}),
              (Error{Fault::forbidden, "wrong password"}));
  const auto at = line->attempts();
  ASSERT_EQ(at.size(), 14u);
  auto shortest = Clock::Duration::max();
  for (std::size_t i = 1; i < at.size(); ++i) {
    EXPECT_GE(at[i] - at[i - 1], std::min<Clock::Duration>(10ms * (1 << (i - 1)), 40ms)) << i;
    if (i >= 7) shortest = std::min(shortest, at[i] - at[i - 1]);
  }
  EXPECT_LT(shortest, 500ms) << "never longer than a call: otherwise half a second to one by then";
}

TEST(CallThreadConnecting, AFailedAttemptLeavesItsSocketClosed) {
  int ends[2]{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  CallThread thread(std::make_shared<Line>([&ends](auto& attempt, auto&) {
    attempt.step("server (there)", "greeting", ends[0]);
    ::close(ends[0]);
    return std::optional(Error{Fault::unreachable, "refused"});
  }));
  EXPECT_TRUE(thread.call([](auto&) {}, within(5s)));
  char byte = 0;
  EXPECT_EQ(::recv(ends[1], &byte, 1, MSG_DONTWAIT), 0) << "a duplicate is still open";
  ::close(ends[1]);
}

TEST(CallThreadConnecting, ACallThatEndsWhileAnAttemptIsBackedOffReportsWhatFailed) {
  const auto tells = [] {
    const auto line = std::make_shared<Line>([](auto&, auto&) { return std::optional(Error{Fault::forbidden, "no"}); });
    CallThread thread(line);
    EXPECT_TRUE(thread.call([](auto&) {}, within(5s)));
    const auto error = thread.call([](auto&) {}, within(1ms));
    return error == Error{Fault::forbidden, "no"} && line->attempts().size() == 1;
  };
  EXPECT_TRUE(eventually(tells));  // on a busy machine the limit may pass before the call waits
}

TEST(CallThreadConnecting, AnExceptionOfAConnectIsAnError) {
  const auto line = std::make_shared<Line>([](auto&, auto&) -> std::optional<Error> { throw std::bad_alloc(); });
  CallThread thread(line);
  const auto error = thread.call([](auto&) {}, within(5s));
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("bad_alloc"));
}

TEST(CallThreadConnecting, AConnectionThatThrowsWhenItIsAskedWhetherItStandsIsMadeAnew) {
  struct Lost final : CallThread::Connection {
    int made{};
    std::optional<Error> connect(CallThread::Attempt&) override { return ++made, std::nullopt; }
    bool stands() override { throw 7; }
  };
  const auto lost = std::make_shared<Lost>();
  CallThread thread(lost);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(thread.call([](auto&) {}, within(5s)));
  EXPECT_EQ(lost->made, 2);
}

TEST_F(CallThreadTest, AConnectionThatBrokeIsMadeAnewWithinTheCall) {
  EXPECT_FALSE(connect());
  line->drop();
  EXPECT_FALSE(connect());
  EXPECT_EQ(line->attempts().size(), 2u);
}

// ---- asking ----

TEST_F(CallThreadThatStands, AnAnswerThatComesLateCostsTheCallAndNotTheConnection) {
  EXPECT_THAT(trouble(late_read()), HasSubstr("server (here): no answer within 30 ms"));
  line->silence()->say('1');
  line->silence()->say('2');
  EXPECT_TRUE(is(read(within(5s)), 1)) << "the first answer is the first question's";
  EXPECT_EQ(line->attempts().size(), 1u);
}

TEST_F(CallThreadThatStands, AQuestionThatTwoCallsWaitedForIsEnded) {
  EXPECT_THAT(trouble(late_read()), HasSubstr("no answer"));
  std::atomic<bool> ran{};
  const auto error =
      after_its_limit([&](const Limit& limit) { return thread.call([&ran](auto&) { ran = true; }, limit); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("the connection is ended"));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(is(read(within(5s)), 0)) << "the socket was shut down, so the next one sees the end of the stream";
}

TEST_F(CallThreadThatStands, AStopEndsTheCallAtOnceAndNotTheConnection) {
  std::stop_source stop;
  std::promise<void> reading;
  std::jthread stopper([&] {
    reading.get_future().wait();
    stop.request_stop();
  });
  const auto error = thread.call(
      [line = line, &reading](auto&) {
        reading.set_value();
        read_a_byte(line->silence()->ends[0]);
      },
      within(1h, stop.get_token()));
  EXPECT_TRUE(error);
  ManualClock clock;
  std::stop_source next_stop;
  auto next = std::async(std::launch::async,
                         [&] { return thread.call([](auto&) {}, within(1h, clock, next_stop.get_token())); });
  ASSERT_TRUE(clock.await_parked(1)) << "it waits for the answer to the first";
  next_stop.request_stop();
  const auto stopped = next.get();
  ASSERT_TRUE(stopped);
  EXPECT_THAT(stopped->message, AllOf(HasSubstr("no answer"), Not(HasSubstr("ended"))));
  line->silence()->say('1');
  line->silence()->say('2');
  EXPECT_TRUE(is(read(within(5s)), 1));
}

TEST(CallThreadAsking, AMessageNamesTheRoundTripAndTheLimit) {
  const auto line = std::make_shared<Line>([](auto& attempt, auto&) {
    attempt.round_trip(41ms);
    return std::optional<Error>();
  });
  CallThread thread(line);
  const auto said =
      trouble(cut_off(thread, [line](auto&) -> Result<int> { return read_a_byte(line->silence()->ends[0]); }));
  for (const auto* part : {"no answer within 30 ms", "a round trip took 41 ms", "raise Timing::call"})
    EXPECT_THAT(said, HasSubstr(part));
}

TEST_F(CallThreadTest, NothingIsBegunAfterTheLimit) {
  std::atomic<bool> ran{};
  EXPECT_TRUE(thread.call([&ran](auto&) { ran = true; }, within(-1ms)));
  EXPECT_FALSE(connect());
  EXPECT_FALSE(ran);
}

TEST_F(CallThreadTest, AfterABodyThatThrewAllTheSameTheNextOneRuns) {
  EXPECT_TRUE(thread.call([](auto&) { throw std::bad_alloc(); }, within(5s)));
  EXPECT_FALSE(connect());
}

TEST_F(CallThreadThatStands, ABrokenPipeKillsNobody) {
  ::shutdown(line->silence()->ends[0], SHUT_RDWR);
  const auto written = thread.ask(
      [line = line](auto&) -> Result<int> { return static_cast<int>(::write(line->silence()->ends[0], "x", 1)); },
      within(5s));
  EXPECT_TRUE(is(written, -1));
}

// ---- waiting for the other end ----

TEST_F(CallThreadThatStands, AWaitEndsAtTheLimitAndItsConnectionLivesOn) {
  EXPECT_TRUE(eventually([&] { return is(await(within(100ms)), false); })) << in_time;
  line->silence()->say('x');
  EXPECT_TRUE(is(await(within(5s)), true));
  EXPECT_TRUE(is(read(within(5s)), 1));
}

TEST_F(CallThreadThatStands, AWaitAfterItsEndReturnsAtOnce) {
  const auto wait_twice = [](CallThread::Socket& socket) -> Result<std::pair<bool, bool>> {
    const bool first = socket.wait();
    return std::pair(first, socket.wait());
  };
  EXPECT_TRUE(eventually([&] { return is(thread.ask(wait_twice, within(100ms)), std::pair(false, false)); }))
      << in_time;
}

TEST_F(CallThreadThatStands, ABodyThatTalksOnAfterItsWaitEndedIsEndedByTheNextCall) {
  std::promise<int> read;
  EXPECT_FALSE(cut_off(thread, [line = line, &read](CallThread::Socket& socket) -> Result<bool> {
    socket.wait();
    read.set_value(read_a_byte(line->silence()->ends[0]));
    return true;
  }));
  EXPECT_TRUE(late());
  EXPECT_EQ(read.get_future().get(), 0);
}

// ---- exchanges ----

struct ExchangeTest : CallThreadTest {
  Result<char> ask(const Limit& limit) {
    return thread.exchange([this](Exchange& exchange) { return line->ask(exchange); }, limit);
  }
  /// One that waits until its limit. What it says then.
  std::string late_ask() {
    return trouble(after_its_limit([&](const Limit& limit) { return ask(limit); }));
  }
  void answer(char byte) const { line->silence()->say(byte); }
};

using ExchangeThatStands = ThatStands<ExchangeTest>;

TEST_F(ExchangeTest, RunsOnItsCallersThreadOnceTheConnectionStands) {
  const auto where = [](Exchange&) -> Result<std::thread::id> { return std::this_thread::get_id(); };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(is(thread.exchange(where, within(5s)), std::this_thread::get_id()));
  ManualClock clock;
  EXPECT_TRUE(is(thread.exchange(where, within(5s, clock)), std::this_thread::get_id()));
  EXPECT_EQ(line->attempts().size(), 1u);
}

TEST_F(ExchangeThatStands, AnAnswerThatIsLateIsNotTheNextOnes) {
  EXPECT_THAT(late_ask(), HasSubstr("server (here): no answer within 30 ms"));
  for (const char byte : {'1', '2'}) answer(byte);
  EXPECT_TRUE(is(ask(within(5s)), '2')) << "the first answer is the first question's";
  EXPECT_EQ(line->attempts().size(), 1u);
}

TEST_F(ExchangeThatStands, AnAnswerMayComeWhileTheNextQuestionWaitsForIt) {
  late_ask();
  ManualClock stands;
  auto next = std::async(std::launch::async, [&] { return ask(within(30ms, stands)); });
  ASSERT_TRUE(stands.await_parked(1));
  answer('1');
  ASSERT_TRUE(stands.await_parked(1)) << "the first answer was the first question's";
  answer('2');
  EXPECT_TRUE(is(next.get(), '2'));
  auto by_boot_clock = std::async(std::launch::async, [&] { return ask(within(1h)); });
  answer('3');
  EXPECT_TRUE(is(by_boot_clock.get(), '3'));
  EXPECT_EQ(line->attempts().size(), 1u);
}

TEST_F(ExchangeThatStands, WhoWaitedForTheThreadTakesNoAnswerToAnEarlierQuestion) {
  late_ask();
  std::promise<void> go;
  EXPECT_FALSE(cut_off(thread, [goes = go.get_future().share()](auto&) -> Result<bool> { return goes.wait(), true; }));
  ManualClock stands;
  auto next = std::async(std::launch::async, [&] { return ask(within(30ms, stands)); });
  EXPECT_TRUE(stands.await_parked(1)) << "it waits for the thread";
  go.set_value();
  for (const char byte : {'1', '2'}) answer(byte);
  EXPECT_TRUE(is(next.get(), '2')) << "the first answer is the first question's";
}

TEST_F(ExchangeThatStands, AQuestionThatTwoExchangesWaitedForIsEnded) {
  late_ask();
  EXPECT_THAT(late_ask(), HasSubstr("nor to the question before it: the connection is ended"));
  auto third = std::async(std::launch::async, [&] { return ask(within(1min)); });
  ASSERT_TRUE(eventually([&] { return line->attempts().size() == 2; })) << "the connection was not ended";
  ASSERT_TRUE(eventually([&] { return line->silence() != nullptr; }));
  answer('3');
  EXPECT_TRUE(is(third.get(), '3'));
}

TEST_F(ExchangeThatStands, AStopEndsItAtOnceAndNotTheConnection) {
  for (int i = 0; i < 2; ++i) {
    std::stop_source stop;
    auto asking = std::async(std::launch::async, [&] { return ask(within(1h, stop.get_token())); });
    stop.request_stop();
    EXPECT_FALSE(asking.get());
  }
  for (int i = 0; i < 2; ++i) {  // The second waits for the answer to the first.
    ManualClock clock;
    std::stop_source stop;
    auto asking = std::async(std::launch::async, [&] { return ask(within(1h, clock, stop.get_token())); });
    ASSERT_TRUE(clock.await_parked(1));
    stop.request_stop();
    EXPECT_THAT(trouble(asking.get()), AllOf(HasSubstr("no answer"), Not(HasSubstr("ended"))));
  }
  char byte = 0;
  EXPECT_EQ(::recv(line->silence()->ends[0], &byte, 1, MSG_DONTWAIT), -1) << "its socket was shut down";
}

TEST_F(ExchangeThatStands, AnEndOfTheStreamIsNoticedWhileItWaits) {
  auto asking = std::async(std::launch::async, [&] { return ask(within(1h)); });
  ::shutdown(line->silence()->ends[1], SHUT_RDWR);
  EXPECT_EQ(trouble(asking.get()), "the stream ended");
  auto next = std::async(std::launch::async, [&] { return ask(within(1h)); });
  ASSERT_TRUE(eventually([&] { return line->silence() != nullptr; })) << "it is made anew";
  answer('x');
  EXPECT_TRUE(is(next.get(), 'x'));
}

TEST_F(ExchangeThatStands, AConnectionThatEndedWhileAnAnswerWasOwedIsMadeAnewWithinTheCall) {
  late_ask();
  ::shutdown(line->silence()->ends[1], SHUT_RDWR);
  const auto nothing = [](Exchange&) -> Result<bool> { return true; };
  EXPECT_TRUE(is(thread.exchange(nothing, within(5s)), true));
  EXPECT_EQ(line->attempts().size(), 2u);
}

TEST_F(ExchangeThatStands, AWriteThatDoesNotDrainEndsAtItsLimit) {
  const auto flood = [this](Exchange& exchange) -> Result<bool> {
    const std::string much(1 << 16, 'x');
    while (!exchange.over())
      if (::send(line->silence()->ends[0], much.data(), much.size(), MSG_DONTWAIT) < 0) exchange.wait(POLLOUT);
    return exchange.no_answer();
  };
  const auto ends = [&] {
    return trouble(thread.exchange(flood, within(30ms))).find("no answer") != std::string::npos;
  };
  EXPECT_TRUE(eventually(ends));  // on a busy machine the limit may pass before it begins
  EXPECT_THAT(trouble(after_its_limit([&](const Limit& limit) { return thread.exchange(flood, limit); })),
              HasSubstr("no answer within 30 ms"));
}

TEST_F(ExchangeThatStands, ABrokenPipeKillsNobodyAndIsNotLeftPending) {
  ::shutdown(line->silence()->ends[0], SHUT_RDWR);
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  const auto written = thread.exchange(
      [this](Exchange&) -> Result<int> { return static_cast<int>(::write(line->silence()->ends[0], "x", 1)); },
      within(5s));
  ::signal(SIGPIPE, before);
  EXPECT_TRUE(is(written, -1));
}

TEST_F(ExchangeTest, AnExceptionIsAnErrorAndTheNextOneRuns) {
  const auto bad = [](Exchange&) -> Result<bool> { throw std::bad_alloc(); };
  EXPECT_THAT(trouble(thread.exchange(bad, within(5s))), HasSubstr("bad_alloc"));
  auto next = std::async(std::launch::async, [&] { return ask(within(1h)); });
  answer('x');
  EXPECT_TRUE(is(next.get(), 'x'));
}

TEST_F(ExchangeTest, NothingIsBegunAfterTheLimit) {
  const auto error = trouble(ask(within(-1ms)));
  EXPECT_THAT(error, HasSubstr("before anything was asked"));
  EXPECT_TRUE(line->attempts().empty());
}

TEST_F(ExchangeTest, WithoutDescriptorsItGoesOn) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  ASSERT_FALSE(connect());
  const NoDescriptors none;
  const auto ends = [&] { return trouble(ask(within(1ms))).find("no answer") != std::string::npos; };
  EXPECT_TRUE(eventually(ends));  // on a busy machine the limit may pass before it begins
}

TEST(ExchangeConnecting, AConnectOutlivesTheExchangesThatWaitForIt) {
  std::promise<void> resolving, resolved;
  const auto line = line_that_resolves(resolving, resolved);
  CallThread thread(line);
  int ran = 0;
  const auto call = [&](const Limit& limit) {
    return thread.exchange([&ran](Exchange&) -> Result<int> { return ++ran; }, limit);
  };
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(trouble(after_its_limit(call, i == 0 ? resolving.get_future() : std::future<void>())),
                HasSubstr("still connecting"));
  resolved.set_value();
  EXPECT_TRUE(is(call(within(5s)), 1));
  EXPECT_EQ(line->attempts().size(), 1u);
}

// ---- ends ----

TEST_F(CallThreadThatStands, TheSocketMayBeClosedByItsOwnerMeanwhile) {
  std::promise<void> go_on;
  EXPECT_FALSE(cut_off(thread, [line = line, hang = go_on.get_future().share()](auto&) -> Result<bool> {
    line->drop();
    hang.wait();
    return true;
  }));
  ASSERT_TRUE(eventually([&] { return line->silence() == nullptr; }));
  const Silence other;  // Most likely with the same numbers.
  EXPECT_TRUE(late()) << "which ends the question before it";
  go_on.set_value();
  EXPECT_FALSE(connect());
  other.say('x');
  EXPECT_EQ(read_a_byte(other.ends[0]), 1) << "another socket was shut down in its place";
}

TEST(CallThreadEnd, DestructionEndsAQuestionAndAStepWithASocket) {
  std::promise<void> greeting;
  std::promise<int> read, greeted;
  {
    const auto line = std::make_shared<Line>();
    CallThread thread(line);
    EXPECT_FALSE(cut_off(thread, [&read, line](auto&) -> Result<bool> {
      read.set_value(read_a_byte(line->silence()->ends[0]));
      return true;
    }));
  }
  EXPECT_EQ(read.get_future().get(), 0);
  const auto line = std::make_shared<Line>([&](auto& attempt, const Silence& silence) {
    attempt.step("server", "greeting", silence.ends[0]);
    greeting.set_value();
    greeted.set_value(read_a_byte(silence.ends[0]));
    return std::optional(Error{Fault::unreachable, "broke"});
  });
  {
    CallThread thread(line);
    EXPECT_TRUE(
        after_its_limit([&](const Limit& limit) { return thread.call([](auto&) {}, limit); }, greeting.get_future()));
  }
  EXPECT_EQ(greeted.get_future().get(), 0);
}

TEST(CallThreadEnd, DestructionDoesNotWaitForWhatCannotBeEnded) {
  std::promise<void> resolved;
  const auto line = std::make_shared<Line>([hang = resolved.get_future().share()](auto&, auto&) {
    hang.wait();
    return std::optional<Error>();
  });
  EXPECT_TRUE(eventually([&] {
    auto thread = std::make_unique<CallThread>(line);
    EXPECT_TRUE(thread->call([](auto&) {}, within(1ms)));
    const auto began = boot_clock().now();
    thread.reset();
    return boot_clock().now() - began < 50ms;
  })) << in_time;
  resolved.set_value();
  EXPECT_TRUE(eventually([&] { return line.use_count() == 1; })) << "the threads that were left have not ended";
}

TEST(CallThreadEnd, WithoutDescriptorsAConnectIsAnErrorAndTheRestGoesOn) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  int attempts = 0;
  const auto line = std::make_shared<Line>([&attempts](auto& attempt, const Silence& silence) -> std::optional<Error> {
    if (++attempts > 1) return std::nullopt;
    const NoDescriptors none;
    EXPECT_FALSE(attempt.step("server (here)", "greeting", silence.ends[0]));
    return Error{Fault::unreachable, "ended"};
  });
  auto thread = std::make_unique<CallThread>(line);
  const auto error = thread->call([](auto&) {}, within(5s));
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("server (here): no descriptor is left"));
  EXPECT_FALSE(thread->call([](auto&) {}, within(5s)));
  const NoDescriptors none;
  EXPECT_FALSE(thread->call([](auto&) {}, within(5s)));
  thread->wait_out(within(1ms));
  thread.reset();
}

TEST(CallThreadEnd, AForkedChildMayDestroyIt) {
  auto thread = std::make_unique<CallThread>(std::make_shared<Line>());
  test::in_child([&] {
    thread.reset();
    return true;
  });
}

TEST_F(CallThreadThatStands, AForkedChildIsRefusedAndDoesItsParentNoHarm) {
  std::promise<void> begun;
  auto answer = std::async(std::launch::async, [&] {
    return thread.ask(
        [&](auto&) -> Result<int> {
          begun.set_value();
          return read_a_byte(line->silence()->ends[0]);
        },
        within(10s));
  });
  begun.get_future().wait();
  test::in_child([&] {
    const auto error = thread.call([](auto&) {}, within(20ms));
    const auto exchanged = thread.exchange([](Exchange&) -> Result<bool> { return true; }, within(20ms));
    thread.wait_out(within(1ms));
    return error && error->fault == Fault::misconfigured && !exchanged && exchanged.error() == *error;
  });
  line->silence()->say('x');
  EXPECT_TRUE(is(answer.get(), 1)) << "the child ended its parent's connection";
}

// ---- other clocks ----

TEST_F(CallThreadTest, TheLimitsClockMayBeGoneAfterTheCall) {
  {
    ManualClock clock;
    const Limit limit{clock, clock.now() + 1h, {}};
    EXPECT_FALSE(thread.call([](auto&) {}, limit));
    EXPECT_FALSE(thread.call([](auto&) {}, limit));
    EXPECT_EQ(clock.next_alarm(), Clock::Time::max()) << "nobody waits on it any more";
  }
  EXPECT_FALSE(connect());
}

}  // namespace
}  // namespace tenure
