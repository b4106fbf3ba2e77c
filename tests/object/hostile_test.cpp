// SPDX-License-Identifier: Apache-2.0
// Goal: no server or network can hang, crash or fool us, make us write twice, or make us tell a secret. Method: a
// bucket in memory, before which the test answers as it likes.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stop_token>
#include <thread>

#include <tenure/lock_table.hpp>
#include <tenure/object.hpp>

#include "environment.hpp"
#include "fake_s3.hpp"
#include "full_server.hpp"
#include "in_time.hpp"
#include "no_descriptors.hpp"
#include "resolver.hpp"

namespace tenure::object::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::error_of;
using tenure::test::eventually;
using tenure::test::expect_error;
using tenure::test::expect_error_in_time;
using tenure::test::mentions;
using tenure::test::record;
using tenure::test::swap;
using tenure::test::value;
using tenure::test::within;

std::shared_ptr<ConditionalStore> open_at(const std::string& address) {
  return store(from_url("s3://key:" + canary + "@bucket/jobs?endpoint=http://" + address), "jobs");
}
Expected at(std::uint64_t token, std::vector<std::uint64_t> beats) { return {{token}, std::move(beats)}; }

bool is_put(const std::string& request) { return request.starts_with("PUT "); }

// ---- what it costs ----

TEST(ObjectCost, AFirstElectionTakesTwoRequestsARenewalOneATakeOverTwo) {
  FakeBucket bucket;
  const auto leader = open(from_url(bucket.url()), "jobs"), next = open(from_url(bucket.url()), "jobs");
  auto asked = [&, before = std::size_t{0}]() mutable {
    const auto now = bucket.s3.requests().size();
    return now - std::exchange(before, now);
  };
  const auto granted = leader->acquire(within(20s));
  ASSERT_TRUE(std::holds_alternative<Granted>(granted));
  EXPECT_EQ(asked(), 2U);
  const auto token = std::get<Granted>(granted).token;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::holds_alternative<Granted>(leader->renew(token, within(20s))));
    EXPECT_EQ(asked(), 1U);
  }
  EXPECT_EQ(leader->release(within(20s)), std::nullopt);
  EXPECT_EQ(asked(), 1U);
  EXPECT_TRUE(std::holds_alternative<Granted>(next->acquire(within(20s))));
  EXPECT_EQ(asked(), 2U);
  EXPECT_EQ(bucket.server.accepted(), 2) << "each keeps its connection";
}

TEST(ObjectCost, ARequestToStepDownCostsTheNextRenewalTwoRequestsMore) {
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs"), b = store(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  EXPECT_EQ(b->request_step_down({{1}, "ops", "why"}, within(20s)), std::nullopt);
  const auto before = bucket.s3.requests().size();
  for (std::uint64_t beat = 12; beat < 14; ++beat) {
    const auto renewed = value(a->compare_and_set(at(1, {beat - 1}), record(1, beat), within(20s)));
    EXPECT_TRUE(renewed.applied);
    EXPECT_EQ(renewed.found.step_down, (StepDown{{1}, "ops", "why"})) << "also if an answer was lost";
  }
  EXPECT_EQ(bucket.s3.requests().size() - before, 4U);
  EXPECT_EQ(b->request_step_down({{7}, "late", "why"}, within(20s)), std::nullopt);
  const auto next = value(a->compare_and_set(at(1, {13}), record(2, 21), within(20s)));
  EXPECT_EQ(next.found.step_down, std::nullopt) << "it was another tenure's";
}

TEST(ObjectCost, EachWriteHasAnotherBody) {
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  auto same = record(1, 12);
  for (std::uint64_t beat = 12; beat < 20; ++beat) {
    same.beat = beat;
    ASSERT_TRUE(swap(*a, at(1, {beat - 1}), same));
  }
  std::set<std::string> bodies;
  for (const auto& request : bucket.s3.requests())
    EXPECT_TRUE(!is_put(request) || bodies.insert(request.substr(request.find("\r\n\r\n"))).second);
}

TEST(ObjectCost, BareVersionsAreHandedBackAsTheyCame) {
  FakeBucket bucket;
  bucket.s3.quote = "";
  const auto a = store(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  EXPECT_TRUE(swap(*a, at(1, {11}), record(1, 12)));
  EXPECT_FALSE(swap(*a, at(1, {11}), record(1, 13)));
}

// ---- refusals ----

/// As when a proxy sent the write twice, or two writes met: nobody knows.
TEST(ObjectHostile, ARefusalCountsOnlyIfAnotherVersionStandsThere) {
  for (const auto& refusal : {precondition, failure("409 Conflict", "ConditionalRequestConflict"), no_such_key}) {
    FakeBucket bucket;
    const auto a = store(from_url(bucket.url()), "jobs");
    ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
    std::atomic<int> writes{0};
    bucket.s3.first = [&](const std::string& request) -> std::optional<Answer> {
      if (!is_put(request)) return std::nullopt;
      return ++writes, Answer{refusal};
    };
    expect_error(error_of(a->compare_and_set(at(1, {11}), record(1, 12), within(20s))), Fault::unreachable,
                 {"although what it was to replace stands there"});
    EXPECT_EQ(writes, 1);
    bucket.s3.first = nullptr;
    EXPECT_TRUE(swap(*a, at(1, {11, 12}), record(1, 13)));
  }
}

TEST(ObjectHostile, AWriteOfAnObjectThatHasGoneIsRefused) {
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  bucket.s3.first = [&](const std::string&) { return Answer{no_such_key}; };
  const auto refused = value(a->compare_and_set(at(1, {11}), record(1, 12), within(20s)));
  EXPECT_FALSE(refused.applied);
  EXPECT_FALSE(refused.found.record);
}

TEST(ObjectHostile, AWriteIsSentOnce) {
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs");
  EXPECT_TRUE(a->read(within(20s)));
  std::atomic<int> writes{0};
  bucket.s3.first = [&](const std::string& request) -> std::optional<Answer> {
    if (!is_put(request)) return std::nullopt;
    return ++writes, Answer{"", true};
  };
  for (int calls = 1; calls <= 3; ++calls) {
    EXPECT_FALSE(a->compare_and_set(std::nullopt, record(1, 11), within(20s)));
    EXPECT_EQ(writes, calls);
  }
}

TEST(ObjectHostile, AnAnswerThatIsLostLeavesTheWriteFound) {
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  std::atomic<bool> loses{true};
  FakeServer relay([&](const std::string& request) {
    auto answer = bucket.s3(request);
    if (is_put(request) && loses.exchange(false)) return Answer{"", true};
    return answer;
  });
  const auto b = open_at(relay.address());
  EXPECT_FALSE(b->compare_and_set(at(1, {11}), record(1, 12), within(20s)));
  EXPECT_TRUE(swap(*b, at(1, {11, 12}), record(1, 13)));
}

TEST(ObjectHostile, NothingIsWrittenAfterTheLimit) {
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  const auto before = bucket.s3.requests().size();
  EXPECT_FALSE(a->compare_and_set(at(1, {11}), record(1, 12), within(0ms)));
  EXPECT_FALSE(a->read(within(-1ms)));
  EXPECT_EQ(bucket.s3.requests().size(), before);
}

/// Its caller has gone, and may lead no more. So it must not write, although its read is answered now.
TEST(ObjectHostile, NothingIsWrittenForACallerWhoHasLeft) {
  FakeBucket bucket;
  std::atomic<bool> asked{false}, held{true};
  bucket.s3.first = [&](const std::string& request) -> std::optional<Answer> {
    if (is_put(request)) return std::nullopt;
    asked = true;
    eventually([&] { return !held; });
    return std::nullopt;
  };
  const auto a = store(from_url(bucket.url()), "jobs");
  std::stop_source stop;
  std::jthread caller(
      [&] { EXPECT_FALSE(a->compare_and_set(std::nullopt, record(1, 11), within(20s, stop.get_token()))); });
  EXPECT_TRUE(eventually([&] { return asked.load(); }));
  stop.request_stop();
  caller.join();
  held = false;
  EXPECT_FALSE(tenure::test::value(a->read(within(20s))).record) << "comes after what the call before left behind";
}

// ---- answers ----

std::vector<std::string> odd_answers() {
  const std::string etag = "ETag: \"a\"\r\n";
  return {"garbage\r\n",
          std::string("\0\0\0\0\r\n", 6),
          "\r\n\r\n",
          "HTTP/1.1\r\n\r\n",
          "HTTP/9.9 200 OK\r\n\r\n",
          "HTTP/1.1 99999 OK\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
          "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: \"a\"\r\nContent-Length: 3\r\n\r\nabc",
          http("301 Moved", "", "Location: http://127.0.0.1:1/\r\n"),
          http("307 Temporary Redirect", "", "Location: http://127.0.0.1:1/\r\n"),
          http("200 OK"),
          http("200 OK", "{}"),
          http("200 OK", R"({"token":1,"beat":2,"format":1})"),
          http("200 OK", "", etag),
          http("200 OK", "{}", etag),
          http("200 OK", "[]", etag),
          http("200 OK", R"({"token":1,"beat":2,"format":9})", etag),
          http("200 OK", std::string(100'000, '['), etag),
          http("200 OK", R"({"step_down":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}", etag),
          http("200 OK", std::string(1 << 20, ' '), etag),
          http("200 OK", R"({"token":1,"beat":2,"format":1})", "ETag: W/\"a\"\r\n"),
          http("200 OK", R"({"token":1,"beat":2,"format":1})", "ETag: " + std::string(2000, 'x') + "\r\n"),
          http("204 No Content", "", etag),
          http("206 Partial Content", "{", etag),
          http("404 Not Found"),
          http("404 Not Found", "<html>no</html>"),
          http("404 Not Found", "<Error><Code>NoSuchKey"),
          failure("500 Internal Server Error", "InternalError", canary + "\n\x1b[31m"),
          failure("403 Forbidden", canary, canary),
          failure("301 Moved", "PermanentRedirect", canary, "x-amz-bucket-region: " + canary + "\r\n"),
          http("502 Bad Gateway", std::string(190, 'x') + canary)};
}

TEST(ObjectHostile, AnOddAnswerIsAnErrorInTime) {
  const Environment none;
  tenure::test::for_each_at_once(odd_answers(), [](const std::string& bytes) {
    SCOPED_TRACE(testing::PrintToString(bytes.substr(0, 80)));
    FakeServer always([&](const std::string&) { return Answer{bytes}; });
    expect_error_in_time(*open_at(always.address()), 60ms);
    FakeServer gone([&](const std::string&) { return Answer{bytes.substr(0, bytes.size() / 2), true}; });
    expect_error_in_time(*open_at(gone.address()), 60ms);
    Opening opening;
    opening.url = "s3://key:" + canary + "@bucket/jobs?endpoint=http://" + always.address();
    opening.election = "jobs";
    tenure::test::expect_in_time("check_up", 100ms, [&](const Limit& limit) {
      const auto checks = check_url(opening, limit);
      std::string told = checks ? "" : checks.error().message;
      if (checks)
        for (const auto& check : *checks) told += check.what + check.remedy;
      EXPECT_FALSE(mentions(told, canary)) << told;
    });
  });
}

TEST(ObjectHostile, AnAnswerWithoutEndIsGivenUp) {
  for (const std::string beginning :
       {"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n"}) {
    std::string bytes = beginning;
    while (bytes.size() < 1 << 20) bytes += beginning.ends_with("OK\r\n") ? "X: y\r\n" : std::string(1000, 'x');
    FakeServer endless([&](const std::string&) { return Answer{bytes}; });
    const auto error = error_of(open_at(endless.address())->read(within(20s)));
    expect_error(error, Fault::unreachable);
    EXPECT_TRUE(mentions(error.message, "more than 256 KiB") || beginning.find("\r\n\r\n") == beginning.npos)
        << error.message;
  }
}

/// The lease lives on, since nothing is denied; and the server has its rest.
TEST(ObjectHostile, AServerThatAsksForFewerRequestsIsLeftAloneForAWhile) {
  for (const auto& slow : {failure("503 Slow Down", "SlowDown"), http("429 Too Many Requests")}) {
    FakeBucket bucket;
    const auto a = open(from_url(bucket.url()), "jobs");
    const auto granted = a->acquire(within(20s));
    ASSERT_TRUE(std::holds_alternative<Granted>(granted));
    const auto token = std::get<Granted>(granted).token;
    const auto before = bucket.s3.requests().size();
    bucket.s3.first = [&](const std::string&) { return Answer{slow}; };
    const auto slowed = [&](const Limit& limit) {
      const auto answer = a->renew(token, limit);
      ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
      expect_error(std::get<Unknown>(answer).error, Fault::unreachable);
    };
    slowed(within(20s));  // asks twice, so it is left alone for a quarter of a second at least
    for (int i = 0; i < 5; ++i) slowed(within(100ms));
    EXPECT_EQ(bucket.s3.requests().size() - before, 2U) << "no call asks whose limit ends before that";
    EXPECT_EQ(bucket.server.accepted(), 1);
    bucket.s3.first = nullptr;
    EXPECT_TRUE(eventually([&] { return std::holds_alternative<Granted>(a->renew(token, within(20s))); }));
  }
}

/// A name may have several servers, and a balancer keeps a connection at one of them.
TEST(ObjectHostile, AServerThatCannotServeIsAskedByAnotherConnectionNext) {
  for (const auto* status : {"500 Internal Server Error", "503 Service Unavailable"}) {
    FakeBucket bucket;
    const auto a = store(from_url(bucket.url()), "jobs");
    EXPECT_TRUE(a->read(within(20s)));
    bucket.s3.first = [&](const std::string&) { return Answer{http(status)}; };
    EXPECT_FALSE(a->read(within(20s)));
    bucket.s3.first = nullptr;
    EXPECT_TRUE(a->read(within(20s)));
    EXPECT_EQ(bucket.server.accepted(), 2) << status;
  }
}

/// Google writes an object once a second. A release that is lost costs the others a term.
TEST(ObjectHostile, AReleaseThatMeetsARequestForAPauseIsSentAgainInTheSameCall) {
  FakeBucket bucket;
  const auto a = open(from_url(bucket.url()), "jobs");
  ASSERT_TRUE(std::holds_alternative<Granted>(a->acquire(within(20s))));
  std::atomic<int> slow{1};
  bucket.s3.first = [&](const std::string&) -> std::optional<Answer> {
    return slow-- > 0 ? std::optional(Answer{http("429 Too Many Requests")}) : std::nullopt;
  };
  EXPECT_EQ(a->release(within(20s)), std::nullopt);
  const auto released = tenure::test::value(store(from_url(bucket.url()), "jobs")->read(within(20s)));
  EXPECT_TRUE(released.record && released.record->released);
}

// ---- silence ----

TEST(ObjectHostile, AConnectionThatIsRefusedIsAnErrorWithTheAddress) {
  expect_error(error_of(open_at("127.0.0.1:1")->read(within(20s))), Fault::unreachable, {"s3 127.0.0.1:1, bucket"});
  expect_error_in_time(*open_at("127.0.0.1:1"), 60ms);
}

TEST(ObjectHostile, ASilentServerEndsNoCallLate) {
  FakeServer silent([](const std::string&) { return Answer{}; });
  expect_error_in_time(*open_at(silent.address()), 60ms);
  const tenure::test::FullServer full;
  expect_error_in_time(*open_at(full.address()), 60ms);
}

TEST(ObjectHostile, AServerThatDripsEndsNoCallLate) {
  FakeServer drips([](const std::string&) {
    const auto waker = boot_clock().make_waker();
    waker->wait_until(boot_clock().now() + 20ms);
    return Answer{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"};
  });
  expect_error_in_time(*open_at(drips.address()), 60ms);
}

TEST(ObjectHostile, AResolverThatNeverAnswersEndsNoCallLate) {
  FakeBucket bucket;
  const auto port = std::to_string(bucket.server.port());
  const auto a = open_at("black.hole:" + port);
  for (int i = 0; i < 3; ++i) expect_error_in_time(*a, 30ms);
  {
    const auto gone = open_at("black.hole:" + port);
    EXPECT_FALSE(gone->read(within(30ms)));
  }  // leaves its thread behind, and does not wait for it
  tenure::test::resolver().answer();
  EXPECT_TRUE(eventually([&] { return bool(a->read(within(500ms))); }));
}

TEST(ObjectHostile, WithoutDescriptorsTheErrorSaysWhatToRaise) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  FakeBucket bucket;
  const auto a = store(from_url(bucket.url()), "jobs");
  EXPECT_TRUE(a->read(within(20s)));
  bucket.s3.first = [](const std::string&) { return Answer{"", true}; };
  EXPECT_FALSE(a->read(within(20s)));
  const tenure::test::NoDescriptors none;
  expect_error(error_of(a->read(within(20s))), Fault::unreachable, {"ulimit -n"});
  a->await_change(std::nullopt, within(50ms));
}

}  // namespace
}  // namespace tenure::object::test
