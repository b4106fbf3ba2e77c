// SPDX-License-Identifier: Apache-2.0
// Goal: no server, network or resolver can hang, crash or fool us, or make us tell a password. Method: servers that
// answer as the test says, a resolver that never answers, and no descriptors.
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include <tenure/etcd.hpp>

#include "checks.hpp"
#include "checkup.hpp"
#include "eventually.hpp"
#include "fake_etcd.hpp"
#include "full_server.hpp"
#include "gateway.hpp"
#include "in_time.hpp"
#include "lone_followers.hpp"
#include "no_descriptors.hpp"
#include "open_signals.hpp"
#include "resolver.hpp"
#include "store_calls.hpp"

namespace tenure::etcd::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::error_of;
using tenure::test::eventually;
using tenure::test::expect_error;
using tenure::test::expect_error_in_time;
using tenure::test::FakeServer;
using tenure::test::FullServer;
using tenure::test::mentions;
using tenure::test::record;
using tenure::test::resolver;
using tenure::test::within;
using Answer = FakeServer::Answer;

std::shared_ptr<ConditionalStore> plain_at(const std::string& addresses) {
  return store(from_url("etcd://" + addresses), "jobs", no_log);
}
std::shared_ptr<ConditionalStore> open_at(const std::string& address) {
  return plain_at("u:" + canary + "@" + address);
}

const std::string absent =
    http(R"({"header":{"revision":"5"},"succeeded":true,"responses":[{"response_range":{}},{"response_range":{}}]})");

/// There is no record, whatever is asked.
Answers empty(const std::string& status) {
  return once_inside([](const std::string&) { return Answer{absent}; }, status);
}

// ---- answers ----

std::vector<std::string> odd_answers() {
  const std::string header = R"("header":{"revision":"5"})";
  const auto found = [&](const std::string& kvs) {
    return http("{" + header + R"(,"succeeded":true,"responses":[{"response_range":{"kvs":)" + kvs +
                R"(}},{"response_range":{}}]})");
  };
  return {"garbage\r\n",
          std::string("\0\0\0\0\r\n", 6),
          "\r\n\r\n",
          "HTTP/1.1\r\n\r\n",
          "HTTP/9.9 200 OK\r\n\r\n",
          "HTTP/1.1 99999 OK\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nx",
          "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
          http(""),
          http("{}"),
          http("[]"),
          http("null"),
          http("{" + header + "}"),
          http("{" + header + R"(,"succeeded":true,"responses":[]})"),
          found(R"([{"value":"e30="}])"),
          found(R"([{"value":"!"}])"),
          http(std::string(100'000, '[')),
          http("{" + header + R"(,"responses":)" + std::string(130'000, '[') + std::string(130'000, ']') + "}"),
          http("{" + header + R"(,"members":[{"isLearner":)" + std::string(130'000, '[') + std::string(130'000, ']') +
               R"(}],"alarms":[null,7,{"alarm":7}],"more":true,"kvs":[null]})"),
          http(std::string(1 << 20, ' ')),
          http("\xff\xfe"),
          http(R"({"error":")" + canary + R"(\n\u001b[31m","code":14})", "503 Service Unavailable"),
          http(R"({"error":{"message":7}})", "500 X"),
          http(R"({"error":7,"code":"x"})", "500 X"),
          http(canary, "400 Bad Request"),
          http("Not Found", "404 Not Found"),
          http("", "204 No Content")};
}

TEST(EtcdHostile, AnOddAnswerIsAnErrorInTime) {
  tenure::test::for_each_at_once(odd_answers(), [](const std::string& bytes) {
    SCOPED_TRACE(testing::PrintToString(bytes.substr(0, 80)));
    FakeServer always([&](const std::string&) { return Answer{bytes}; });
    expect_error_in_time(*open_at(always.address()), 60ms);
    FakeServer later(once_inside([&](const std::string&) { return Answer{bytes}; }));
    expect_error_in_time(*open_at(later.address()), 60ms);
    FakeServer gone(once_inside([&](const std::string&) { return Answer{bytes.substr(0, bytes.size() / 2), true}; }));
    expect_error_in_time(*open_at(gone.address()), 60ms);
  });
}

/// The doctor and the list read other answers than an election does.
TEST(EtcdHostile, AnOddAnswerToTheDoctorOrToAListIsAnErrorInTime) {
  tenure::test::for_each_at_once(odd_answers(), [](const std::string& bytes) {
    SCOPED_TRACE(testing::PrintToString(bytes.substr(0, 80)));
    FakeServer odd(once_inside([&](const std::string&) { return Answer{bytes}; }));
    FakeServer always([&](const std::string&) { return Answer{bytes}; });
    for (const auto& address : {odd.address(), always.address()}) {
      const auto url = "etcd://u:" + canary + "@" + address;
      tenure::test::expect_in_time("check_up", 100ms, [&](const Limit& limit) {
        const auto checks = check_up(from_url(url), "jobs", limit);
        std::string told = checks ? "" : checks.error().message;
        if (checks)
          for (const auto& check : *checks) told += check.what + check.remedy;
        EXPECT_FALSE(mentions(told, canary)) << told;
      });
      Opening opening;
      opening.url = url;
      opening.log = no_log;
      const auto list = list_url(opening);
      tenure::test::expect_in_time("next", 60ms, [&](const Limit& limit) {
        const auto page = list(limit);
        EXPECT_TRUE(!page || page->elections.empty());
      });
    }
  });
}

/// What a member says of a watch is told as a warning.
TEST(EtcdHostile, AWatchShowsNoPassword) {
  for (const auto& line :
       {R"({"result":{"canceled":true,"cancel_reason":"of )" + canary + "\"}}\n", std::string(70, 'x') + canary + "\n",
        R"({"error":{"message":")" + canary + "\"}}\n", R"({"error":")" + canary + "\"}\n"}) {
    FakeServer tells(once_inside([&](const std::string&) {
      return Answer{"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(line.size()) + "\r\n\r\n" + line};
    }));
    tenure::test::Lines lines;
    const auto a = store(from_url("etcd://u:" + canary + "@" + tells.address()), "jobs", lines.log());
    EXPECT_TRUE(eventually([&] {
      a->await_change(std::nullopt, within(100ms));
      return lines.mention("cannot watch");
    }));
    EXPECT_FALSE(lines.mention(canary.substr(0, 4))) << lines.all().back();
  }
}

TEST(EtcdHostile, ALoginWithoutATokenThatAHeaderCanHaveIsAnError) {
  for (const std::string given : {"", "a b", "a\\r\\nX: y", "\\u0000", "\\u007f", "\\u00e4"}) {
    FakeServer odd([&](const std::string& request) {
      if (request.starts_with("POST /v3/maintenance/status ")) return Answer{member_of("1")};
      return Answer{http(R"({"header":{"revision":"1"},"token":")" + given + "\"}")};
    });
    const auto error = error_of(open_at(odd.address())->read(within(20s)));
    EXPECT_TRUE(mentions(error.message, "without a token that a header can have")) << given << error.message;
  }
}

TEST(EtcdHostile, AnAnswerWithoutEndIsGivenUp) {
  for (const std::string beginning :
       {"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n"}) {
    std::string bytes = beginning;
    while (bytes.size() < 1 << 20) bytes += beginning.ends_with("OK\r\n") ? "X: y\r\n" : std::string(1000, 'x');
    FakeServer endless(once_inside([&](const std::string&) { return Answer{bytes}; }));
    expect_error(error_of(open_at(endless.address())->read(within(20s))), Fault::unreachable);
  }
}

TEST(EtcdHostile, AWatchWithoutEndOfLineIsGivenUp) {
  FakeServer endless(once_inside([](const std::string&) {
    return Answer{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + std::string(1 << 20, 'x')};
  }));
  tenure::test::Lines lines;
  const auto a = store(from_url("etcd://" + endless.address()), "jobs", lines.log());
  EXPECT_TRUE(eventually([&] {
    a->await_change(std::nullopt, within(100ms));
    return lines.mention("more than 256 KiB");
  }));
}

/// libcurl would send it again on a new connection, if the one that it kept broke without an answer.
TEST(EtcdHostile, AWriteIsSentOnce) {
  std::atomic<int> writes{0};
  FakeServer breaks(once_inside([&](const std::string& request) {
    if (request.find("request_put") == request.npos) return Answer{absent};
    ++writes;
    return Answer{"", true};
  }));
  const auto a = open_at(breaks.address());
  for (int calls = 1; calls <= 3; ++calls) {
    EXPECT_FALSE(a->compare_and_set(std::nullopt, record(1, 11), within(20s)));
    EXPECT_EQ(writes, calls);
  }
}

/// Its caller has gone, and may lead no more. So it must not write once more, although another expected beat stands.
TEST(EtcdHostile, NothingIsWrittenAfterTheLimit) {
  const auto found = [](const std::string& succeeded, std::uint64_t beat) {
    const auto text = etcd::base64(R"({"token":1,"beat":)" + std::to_string(beat) + R"(,"format":1})");
    return Answer{http(R"({"header":{"revision":"5"},)" + succeeded +
                       R"("responses":[{"response_range":{"kvs":[{"value":")" + text +
                       R"("}]}},{"response_range":{}}]})")};
  };
  std::atomic<int> writes{0};
  std::promise<void> gate;
  FakeServer late(once_inside([&, opened = gate.get_future().share()](const std::string& request) {
    if (request.find("request_put") == request.npos) return found(R"("succeeded":true,)", 11);
    ++writes;
    opened.wait();
    return found("", 12);
  }));
  const auto a = plain_at(late.address());
  EXPECT_TRUE(a->read(within(20s)));
  // On a busy machine the limit may pass before the server hears the write. Once it has heard one, the next would wait.
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(a->compare_and_set(Expected{{1}, {11, 12}}, record(1, 13), within(200ms)));
    return writes > 0;
  }));
  EXPECT_EQ(writes, 1);
  gate.set_value();
  EXPECT_TRUE(a->read(within(20s))) << "comes after what the call before left behind";
  EXPECT_EQ(writes, 1);
}

/// A login that does not help is not repeated for ever.
TEST(EtcdHostile, ALoginIsRepeatedOncePerCall) {
  std::atomic<int> logins{0}, asked{0};
  FakeServer forgets([&](const std::string& request) {
    if (request.starts_with("POST /v3/maintenance/status ")) return Answer{member_of("1")};
    if (request.starts_with("POST /v3/auth/authenticate ")) return ++logins, Answer{token};
    ++asked;
    return Answer{http(R"({"error":"etcdserver: invalid auth token","code":16})", "401 Unauthorized")};
  });
  expect_error(error_of(open_at(forgets.address())->read(within(20s))), Fault::forbidden);
  EXPECT_EQ(logins, 2);
  EXPECT_EQ(asked, 2);
}

/// As with passwords that somebody changes while we run.
TEST(EtcdHostile, CredentialsAreAskedForBeforeEachLogin) {
  std::atomic<int> asked{0}, logins{0};
  FakeServer forgets([&](const std::string& request) {
    if (request.starts_with("POST /v3/maintenance/status ")) return Answer{member_of("1")};
    if (request.starts_with("POST /v3/auth/authenticate ")) {
      const auto n = std::to_string(++logins);
      EXPECT_TRUE(mentions(request, R"("name":"u)" + n)) << request;
      EXPECT_TRUE(mentions(request, R"("password":")" + n + "\\\"" + canary)) << request;
      return Answer{token};
    }
    return Answer{http(R"({"error":"etcdserver: invalid auth token )" + std::to_string(logins.load()) + "\\\"" +
                           canary + R"(","code":16})",
                       "401 Unauthorized")};
  });
  auto options = from_url("etcd://" + forgets.address());
  options.credentials = [&] {
    const auto n = std::to_string(++asked);
    return Credentials{"u" + n, n + "\"" + canary};
  };
  const auto error = error_of(store(options, "jobs", no_log)->read(within(20s)));
  EXPECT_EQ(logins, 2);
  EXPECT_FALSE(mentions(error.message, canary)) << error.message;
  options.credentials = []() -> Credentials { throw std::runtime_error("the vault is away"); };
  const auto refused = error_of(store(options, "jobs", no_log)->read(within(20s)));
  EXPECT_EQ(refused.fault, Fault::forbidden);
  EXPECT_TRUE(mentions(refused.message, "the vault is away"));
  options.user = "u";
  options.password = canary;
  EXPECT_THROW(store(options, "jobs"), std::invalid_argument);
}

/// A step of connecting may take 2 s. Without that memory every connection that breaks would cost as much.
TEST(EtcdHostile, AConnectionThatBreaksIsNotMadeAnewByWayOfAMemberThatIsAway) {
  const FullServer away;
  std::atomic<bool> hangs_up{false};
  FakeServer serves(once_inside([&](const std::string&) { return Answer{absent, hangs_up}; }));
  const auto a = plain_at(away.address() + "," + serves.address());
  EXPECT_TRUE(a->read(within(1min)));
  hangs_up = true;
  EXPECT_TRUE(a->read(within(20s))) << "its answer comes before its end";
  hangs_up = false;
  EXPECT_TRUE(tenure::test::reads_before_it_times_out(*a, 1900ms));
}

TEST(EtcdHostile, ANameWhoseFirstAddressIsAwayIsReachedByTheNext) {
  FakeServer serves(empty(member_of("1")));
  const FullServer away(serves.port(), INADDR_LOOPBACK + 1);
  EXPECT_TRUE(plain_at("both.two:" + std::to_string(serves.port()))->read(within(1min)));
}

TEST(EtcdHostile, AMemberThatCannotServeIsLeftForTheNext) {
  FakeServer nameless(empty(http(R"({"leader":"7"})")));
  EXPECT_TRUE(mentions(error_of(plain_at(nameless.address())->read(within(20s))).message, "names no cluster"));
  FakeServer lost(empty(member_of("1", R"("leader":"0")")));
  FakeServer learner(empty(member_of("1", R"("leader":"7","isLearner":true)")));
  FakeServer well(empty(member_of("1")));
  EXPECT_TRUE(mentions(error_of(plain_at(lost.address())->read(within(20s))).message, "no leader"));
  EXPECT_TRUE(mentions(error_of(plain_at(learner.address())->read(within(20s))).message, "learner"));
  EXPECT_TRUE(plain_at(lost.address() + "," + learner.address() + ",127.0.0.1:1," + well.address())->read(within(20s)));
}

const std::string denied = http(R"({"error":"etcdserver: permission denied","code":7})", "403 Forbidden");

/// Nothing is told before a login, and `status` after it.
Answers guarded(const std::string& status, const std::string& cluster) {
  return [=](const std::string& request) {
    if (request.starts_with("POST /v3/auth/authenticate "))
      return Answer{http(R"({"header":{"cluster_id":")" + cluster + R"("},"token":")" + canary + "\"}")};
    if (request.find("Authorization: " + canary) == request.npos)
      return Answer{http(R"({"error":"etcdserver: user name is empty","code":3})", "400 Bad Request")};
    if (request.starts_with("POST /v3/maintenance/status ")) return Answer{status};
    if (request.find("request_put") == request.npos) return Answer{absent};
    return Answer{http(R"({"header":{"revision":"5"},"succeeded":true,)"
                       R"("responses":[{"response_put":{}},{"response_range":{}},{"response_put":{}}]})")};
  };
}

/// etcd tells its status after a login alone since 3.5.28 and 3.6.0, and in some releases to the role root alone.
TEST(EtcdHostile, AMemberThatTellsItsStatusToFewServesThoseWhoLogIn) {
  for (const auto& status : {member_of("1"), denied}) {
    FakeServer member(guarded(status, "1"));
    const auto a = open_at(member.address());
    EXPECT_TRUE(a->read(within(20s)));
    const auto claimed = a->compare_and_set(std::nullopt, record(1, 11), within(20s));
    EXPECT_TRUE(claimed && claimed->applied);
    const auto checks = tenure::test::text_of(
        tenure::test::value(check_up(from_url("etcd://u:" + canary + "@" + member.address()), "jobs", within(20s))));
    EXPECT_FALSE(mentions(checks, "serves no candidate")) << checks;
    EXPECT_EQ(mentions(checks, "does not tell its state"), status == denied) << checks;
    expect_error(error_of(plain_at(member.address())->read(within(20s))), Fault::forbidden, {"set user and password"});
  }
}

TEST(EtcdHostile, TwoClustersThatTellNoStatusAreNotTakenForOne) {
  auto first = std::make_unique<FakeServer>(guarded(denied, "1"));
  FakeServer other(guarded(denied, "2"));
  const auto a = open_at(first->address() + "," + other.address());
  EXPECT_TRUE(a->read(within(20s)));
  first.reset();
  EXPECT_TRUE(eventually([&] { return mentions(error_of(a->read(within(1s))).message, "another cluster"); }));
}

TEST(EtcdHostile, TwoClustersAreNotTakenForOne) {
  auto first = std::make_unique<FakeServer>(empty(member_of("1")));
  FakeServer other(empty(member_of("2")));
  const auto a = plain_at(first->address() + "," + other.address());
  EXPECT_TRUE(a->read(within(20s)));
  first.reset();
  EXPECT_TRUE(eventually([&] {
    const auto read = a->read(within(1s));
    EXPECT_FALSE(read);
    return !read && read.error().fault == Fault::misconfigured && mentions(read.error().message, "another cluster");
  }));
}

// ---- silence ----

TEST(EtcdHostile, AConnectionThatIsRefusedIsAnErrorWithTheAddress) {
  expect_error(error_of(open_at("127.0.0.1:1")->read(within(20s))), Fault::unreachable, {"etcd 127.0.0.1:1: "});
  expect_error_in_time(*open_at("127.0.0.1:1"), 60ms);
  expect_error_in_time(*open_at("no.such.host.invalid"), 200ms);
}

TEST(EtcdHostile, ASilentServerEndsNoCallLate) {
  FakeServer silent([](const std::string&) { return Answer{}; });
  expect_error_in_time(*open_at(silent.address()), 60ms);
  FakeServer later(once_inside([](const std::string&) { return Answer{}; }));
  expect_error_in_time(*open_at(later.address()), 60ms);
}

TEST(EtcdHostile, AServerThatDripsEndsNoCallLate) {
  FakeServer drips(once_inside([](const std::string&) {
    const auto waker = boot_clock().make_waker();
    waker->wait_until(boot_clock().now() + 20ms);
    return Answer{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"};
  }));
  expect_error_in_time(*open_at(drips.address()), 60ms);
}

TEST(EtcdHostile, AResolverThatNeverAnswersEndsNoCallLate) {
  FakeServer serves(empty(member_of("1")));
  const auto port = serves.address().substr(serves.address().find(':'));
  const auto a = plain_at("black.hole" + port);
  for (int i = 0; i < 3; ++i) expect_error_in_time(*a, 30ms);
  {
    const auto gone = plain_at("black.hole" + port);
    EXPECT_FALSE(gone->read(within(30ms)));
  }  // leaves its thread behind, and does not wait for it
  resolver().answer();
  EXPECT_TRUE(eventually([&] { return bool(a->read(within(500ms))); }));
}

TEST(EtcdHostile, WithoutDescriptorsTheErrorSaysWhatToRaise) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  FakeServer serves(empty(member_of("1")));
  const auto a = plain_at(serves.address());
  const tenure::test::NoDescriptors none;
  expect_error(error_of(a->read(within(20s))), Fault::unreachable, {"ulimit -n"});
  a->await_change(std::nullopt, within(50ms));
}

TEST(EtcdHostile, FollowersWhoseWatchesBrokeComeBackAtDifferentMoments) {
  tenure::test::expect_followers_come_back_at_different_moments([] { return open_at("127.0.0.1:1"); });
}

// ---- the check-up ----

/// A handler of the program would otherwise run on a thread that asks a member.
TEST(EtcdCheckup, AsksEachMemberOnAThreadThatBlocksTheProgramsSignals) {
  std::mutex mutex;
  std::map<std::string, std::vector<int>> found;
  FakeServer server([&](const std::string&) {
    const std::lock_guard lock(mutex);
    found.merge(tenure::test::open_signals("tenure-etcd"));
    return Answer{http("{}")};
  });
  const auto checks = check_up(from_url("etcd://" + server.address()), "jobs", within(10s));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(found, (decltype(found){{"tenure-etcd", {}}})) << (checks ? "" : checks.error().message);
}

}  // namespace
}  // namespace tenure::etcd::test
