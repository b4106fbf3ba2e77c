// SPDX-License-Identifier: Apache-2.0
// Goal: no server, network or resolver can hang, crash or fool us, or make us tell a password. Method: servers that
// answer as the test says, one that is stopped, a resolver that never answers, and a process whose SIGPIPE kills.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "full_server.hpp"
#include "in_child.hpp"
#include "in_time.hpp"
#include "lone_followers.hpp"
#include "messages.hpp"
#include "no_descriptors.hpp"
#include "resolver.hpp"
#include "server.hpp"
#include "support.hpp"

namespace tenure::redis::test {
namespace {

using tenure::test::expect_error_in_time;
using tenure::test::expect_in_time;
using tenure::test::FullServer;
using tenure::test::refused;
using tenure::test::resolver;

std::shared_ptr<GroupStore> group_at(const std::string& address) {
  return open_group(from_url("redis://u:" + canary + "@" + address), "shards");
}

std::shared_ptr<ConditionalStore> open_at(const std::string& address, const std::string& rest = {}) {
  return store(from_url("redis://u:" + canary + "@" + address + rest), "jobs");
}

void expect_error_in_time(GroupStore& store, Clock::Duration time) {
  const auto timed = [time](const char* verb, const std::function<void(const Limit&)>& call) {
    expect_in_time(verb, time, call);
  };
  Commit commit;
  commit.session = {7};
  commit.beats = {1};
  commit.claims = {{"x", std::nullopt}};
  timed("look", [&](const Limit& limit) { refused(error_of(store.look({}, limit))); });
  timed("open", [&](const Limit& limit) { refused(error_of(store.open({7}, {}, limit))); });
  timed("commit", [&](const Limit& limit) { refused(error_of(store.commit(commit, limit))); });
  timed("end", [&](const Limit& limit) { refused(error_of(store.end({7}, {1}, 2, limit))); });
  timed("sweep", [&](const Limit& limit) { refused(error_of(store.sweep(limit))); });
  timed("request_step_down", [&](const Limit& limit) {
    refused(store.request_step_down("x", {{1}, "ops", "why"}, limit));
  });
  timed("await_change", [&](const Limit& limit) { store.await_change({}, limit); });
}

const std::string no_record = "*2\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n*0\r\n";

bool is_question(const std::string& request) { return request.find("EVAL") != request.npos; }

/// Answers each question like this, and whatever else it is told, as the introduction, like that.
struct FakeRedis {
  explicit FakeRedis(std::string to_questions, std::string to_others = "+OK\r\n", int port = 0,
                     std::uint32_t ip = INADDR_LOOPBACK)
      : answer(std::move(to_questions)),
        server(
            [this, to_others = std::move(to_others)](const std::string& request) {
              if (!is_question(request)) return FakeServer::Answer{to_each(request, to_others)};
              ++asked;
              return FakeServer::Answer{answer, hangs_up};
            },
            port, ip) {}

  std::string address() const { return server.address(); }
  std::string at(const std::string& name) const { return name + ":" + std::to_string(server.port()); }

  std::string answer;
  std::atomic<bool> hangs_up{false};  ///< After an answer.
  std::atomic<int> asked{0};
  FakeServer server;
};

/// Greets as it should, and answers whatever else with these bytes.
FakeServer odd_after_its_greeting(const std::string& bytes) {
  return FakeServer([bytes](const std::string& request) {
    const bool greeting = request.find("AUTH") != request.npos || request.find("INFO") != request.npos;
    return FakeServer::Answer{greeting ? to_each(request, "+OK\r\n") : bytes};
  });
}
/// Says half of them and hangs up.
FakeServer cut_off(const std::string& bytes) {
  return FakeServer([bytes](const std::string&) {
    return FakeServer::Answer{bytes.substr(0, bytes.size() / 2), true};
  });
}

// ---- answers ----

TEST(RedisHostile, AnOddAnswerIsAnErrorInTime) {
  const std::string huge(1 << 20, 'x');
  const std::vector<std::string> answers = {
      "garbage\r\n",
      std::string("\0\0\0\0\r\n", 6),
      "\r\n",
      "+\r\n",
      "-\r\n",
      ":\r\n",
      ":9223372036854775808\r\n",
      "$-1\r\n",
      "$-2\r\n",
      "$1000000000\r\nx",
      "$99999999999999999999\r\n",
      "*-1\r\n",
      "*-2\r\n",
      "*0\r\n",
      "*1000000000\r\n",
      "*2147483647\r\n",
      "*4294967297\r\n",
      "*1025\r\n",
      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
      "*2\r\n*0\r\n*0\r\n",
      "*3\r\n:1\r\n*0\r\n*0\r\n",
      "*2\r\n$1\r\n1\r\n*-1\r\n",
      "+OK\r\n",
      ":2\r\n",
      "$1048576\r\n" + huge + "\r\n",
      "+" + huge + "\r\n",
      "-" + huge + "\r\n",
      "-ERR " + canary + "\r\n",
      "-" + canary + "\r\n",
      "-CODE " + canary + "\n\x1b[31m\r\n",
      "-ERR unknown command `AUTH`, with args beginning with: `u`, `" + canary + "`, \r\n",
      "-MOVED\r\n",
      "-MOVED 1 127.0.0.1:0\r\n",
      "-MOVED 1 nowhere.invalid.:1\r\n",
      "-ASK 1 ?:1\r\n",
      "-NOSCRIPT\r\n",
      "%1\r\n+a\r\n+b\r\n",
      "_\r\n",
      ">3\r\n",
      "#t\r\n"};
  tenure::test::for_each_at_once(answers, [](const std::string& bytes) {
    SCOPED_TRACE(testing::PrintToString(bytes.substr(0, 60)));
    FakeServer always([&](const std::string&) { return FakeServer::Answer{bytes}; });
    expect_error_in_time(*open_at(always.address()), 60ms);
    expect_error_in_time(*open_at(odd_after_its_greeting(bytes).address()), 60ms);
    expect_error_in_time(*open_at(cut_off(bytes).address()), 60ms);
  });
}

/// As a record's, but for the limits: a group may be large.
TEST(RedisHostile, AnOddAnswerAboutAGroupIsAnErrorInTime) {
  const std::string zero = "$1\r\n0\r\n", none = "$0\r\n\r\n", empty = "*0\r\n";
  const std::string look = "*6\r\n" + zero + none + empty + ":1\r\n" + empty + none;
  const std::vector<std::string> answers = {"garbage\r\n",
                                            "$-1\r\n",
                                            "*-1\r\n",
                                            "*0\r\n",
                                            "*1048577\r\n",
                                            "*2147483647\r\n",
                                            "*4294967297\r\n",
                                            "*2\r\n:2\r\n:-1\r\n",
                                            "*2\r\n:0\r\n" + none,
                                            "*3\r\n:1\r\n:2\r\n" + look,
                                            "*3\r\n:1\r\n:0\r\n*5\r\n" + look.substr(4),
                                            "*5\r\n:1\r\n$1\r\n5\r\n*1\r\n:2\r\n*0\r\n" + look,
                                            "*5\r\n:1\r\n$1\r\n5\r\n*1\r\n:0\r\n*0\r\n" + look,
                                            "*5\r\n:1\r\n$1\r\n5\r\n*1\r\n:-9223372036854775808\r\n*0\r\n" + look,
                                            "*5\r\n:1\r\n$1\r\n5\r\n*1\r\n$1\r\n1\r\n*0\r\n" + look,
                                            "*5\r\n:1\r\n$2\r\n-5\r\n*0\r\n*0\r\n" + look,
                                            "*5\r\n:1\r\n" + none + empty + empty + look,
                                            "-ERR " + canary + "\r\n",
                                            "-MOVED 1 127.0.0.1:0\r\n",
                                            "-NOSCRIPT\r\n"};
  tenure::test::for_each_at_once(answers, [](const std::string& bytes) {
    SCOPED_TRACE(testing::PrintToString(bytes.substr(0, 60)));
    expect_error_in_time(*group_at(odd_after_its_greeting(bytes).address()), 60ms);
    expect_error_in_time(*group_at(cut_off(bytes).address()), 60ms);
  });
}

TEST(RedisHostile, AnAnswerWithoutEndIsGivenUp) {
  FakeServer endless(
      [&](const std::string&) { return FakeServer::Answer{"$1000000000\r\n" + std::string(1 << 20, 'x')}; });
  const auto a = open_at(endless.address());
  expect_error(error_of(a->read(within(2s))), Fault::unreachable, {"more than 256 KiB"});
}

/// A list within a list is announced by some bytes, and costs the memory of what it announces.
TEST(RedisHostile, ElementsCountTogetherHoweverManyListsTheyAreIn) {
  const auto refused = [](const std::string& reply, const auto& open, const std::string& words) {
    const FakeRedis server(reply);
    const auto error = error_of(open(server.address()));
    EXPECT_TRUE(tenure::test::mentions(error.message, words)) << error.message;
  };
  const auto read = [](const std::string& address) { return open_at(address)->read(within(20s)); };
  const auto look = [](const std::string& address) { return group_at(address)->look({}, within(20s)); };
  refused("*2\r\n*600\r\n*600\r\n", read, "more than 1024 elements");
  refused("*6\r\n*1000000\r\n*1000000\r\n", look, "more than 1048576 elements");
  refused("*6\r\n$20000000\r\n" + std::string(2 << 20, 'x'), look, "more than 1 MiB in one text");
}

TEST(RedisHostile, RedirectionsInACircleEnd) {
  FakeRedis circle("");
  circle.answer = "-MOVED 1 " + circle.address() + "\r\n";
  expect_error(error_of(open_at(circle.address())->read(within(5s))), Fault::unreachable,
               {"redirected the call too often"});
  EXPECT_EQ(circle.asked, 5);
}

TEST(RedisHostile, AScriptForgottenForEverIsAnError) {
  const FakeRedis forgets("-NOSCRIPT No matching script\r\n");
  EXPECT_NE(error_of(open_at(forgets.address())->read(within(5s))).message.find("NOSCRIPT"), std::string::npos);
  EXPECT_EQ(forgets.asked, 2) << "by its sha1, and in full";
}

// ---- silence ----

TEST(RedisHostile, AConnectionThatIsRefusedIsAnErrorWithTheAddress) {
  expect_error(error_of(open_at("127.0.0.1:1")->read(within(2s))), Fault::unreachable,
               {"127.0.0.1:1: Connection refused"});
  expect_error_in_time(*open_at("127.0.0.1:1"), 60ms);
  expect_error_in_time(*open_at("no.such.host.invalid"), 200ms);
  expect_error_in_time(*store(from_url("redis+unix:///no/such/socket"), "jobs"), 60ms);
}

TEST(RedisHostile, ASilentServerEndsNoCallLate) {
  FakeServer silent([](const std::string&) { return FakeServer::Answer{}; });
  expect_error_in_time(*open_at(silent.address()), 60ms);
  expect_error_in_time(*group_at(silent.address()), 60ms);
  const auto a = open_at(silent.address());
  EXPECT_TRUE(eventually([&] {
    const auto error = error_of(a->read(within(60ms)));
    EXPECT_EQ(error.fault, Fault::timed_out);
    const auto says = [&](const std::string& words) { return error.message.find(words) != error.message.npos; };
    return says("redis " + silent.address()) && says("(introduction)") && says("Timing::call");
  })) << "a call that finds the connection being made names the step";
}

TEST(RedisHostile, AServerThatDripsEndsNoCallLate) {
  FakeServer drips([](const std::string&) {
    const auto waker = boot_clock().make_waker();
    waker->wait_until(boot_clock().now() + 20ms);
    return FakeServer::Answer{"$100\r\nx"};
  });
  expect_error_in_time(*open_at(drips.address()), 60ms);
  expect_error_in_time(*group_at(drips.address()), 60ms);
}

TEST(RedisHostile, AStoppedServerWhoseKernelAcknowledgesEndsNoCallLate) {
  TENURE_NEEDS_REDIS();
  Server server;
  const auto connected = store(from_url("redis://" + server.address()), "jobs");
  ASSERT_TRUE(swap(*connected, std::nullopt, record(1, 11)));
  connected->await_change(std::nullopt, within(1s));
  server.freeze(true);
  expect_error_in_time(*connected, 60ms);
  expect_error_in_time(*store(from_url("redis://" + server.address()), "jobs"), 60ms);
  expect_error_in_time(*store(from_url("redis+unix://" + server.socket()), "jobs"), 60ms);
  server.freeze(false);
  EXPECT_TRUE(read(*connected).record);
}

TEST(RedisHostile, AResolverThatNeverAnswersEndsNoCallLate) {
  TENURE_NEEDS_REDIS();
  Server server;
  const auto a = store(from_url("redis://black.hole:" + std::to_string(server.port())), "jobs");
  for (int i = 0; i < 3; ++i) expect_error_in_time(*a, 30ms);
  expect_error_in_time(*open_group(from_url("redis://black.hole"), "shards"), 30ms);
  {
    const auto gone = store(from_url("redis://black.hole"), "jobs");
    EXPECT_FALSE(gone->read(within(30ms)));
  }  // leaves its thread behind, and does not wait for it
  resolver().answer();
  EXPECT_TRUE(eventually([&] { return bool(a->read(within(100ms))); }));
}

TEST(RedisHostile, AStoreThatIsDestroyedWhileItConnectsTriesNoFurtherServer) {
  FakeServer silent([](const std::string&) { return FakeServer::Answer{}; });
  FakeServer second([](const std::string&) { return FakeServer::Answer{"-ERR\r\n", true}; });
  auto gone = open_at(silent.address() + "," + second.address());
  EXPECT_TRUE(eventually([&] {
    const auto error = error_of(gone->read(within(60ms)));
    return error.message.find("(introduction)") != error.message.npos;
  }));
  gone.reset();
  EXPECT_FALSE(open_at(second.address())->read(within(2s)));
  EXPECT_EQ(second.accepted(), 1) << "the other store's alone";
}

TEST(RedisHostile, FollowersWhoseSubscriptionsBrokeComeBackAtDifferentMoments) {
  tenure::test::expect_followers_come_back_at_different_moments([] { return open_at("127.0.0.1:1"); });
}

TEST(RedisHostile, WhereNoDescriptorIsAllowedTheSentinelsThreadsSleep) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer mistakes the threads of such a child for the parent's";
#endif
  tenure::test::in_child([] {
    const auto a = store(from_url("redis+sentinel://127.0.0.1:1/main"), "jobs");
    return tenure::test::rests_where_poll_is_refused();
  });
}

// ---- SIGPIPE ----

/// Answers the introduction and is gone before the question is written, as often as it is connected to.
void answer_once_and_close(int listener) {
  for (int fd = 0; (fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(fd)) {
    char buffer[4096];
    const auto got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) continue;
    const auto answer = to_each({buffer, static_cast<std::size_t>(got)}, "+OK\r\n");
    ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
}

/// In children whose SIGPIPE is at its default, and kills.
TEST(RedisHostile, ABrokenPipeKillsNobody) {
  TENURE_NEEDS_REDIS();
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer mistakes the threads of such a child for the parent's";
#endif
  Server server;
  tenure::test::in_child([&] {
    ::signal(SIGPIPE, SIG_DFL);
    const auto a = store(from_url("redis://" + server.address()), "jobs");
    if (!a->read(within(5s))) return false;
    ::kill(server.pid(), SIGKILL);
    for (int i = 0; i < 5; ++i) static_cast<void>(a->read(within(100ms)));
    return true;
  });

  // A Unix socket's very first write to a closed end breaks the pipe.
  const Scratch scratch;
  const auto path = (scratch / "socket").string();
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 16), 0);
  const pid_t closer = ::fork();
  ASSERT_GE(closer, 0);
  if (closer == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    answer_once_and_close(listener);
    ::_exit(0);
  }
  tenure::test::in_child([&] {
    ::signal(SIGPIPE, SIG_DFL);
    const auto a = store(from_url("redis+unix://:pw@" + path), "jobs");
    for (int i = 0; i < 40; ++i) static_cast<void>(a->read(within(100ms)));
    return true;
  });
  ::kill(closer, SIGKILL);
  ::waitpid(closer, nullptr, 0);
  ::close(listener);
}

// ---- sockets ----

/// What `asked` tells of each TCP socket of this process that is in this state.
std::vector<bool> of_sockets(int state, const std::function<bool(int fd)>& asked) {
  std::vector<bool> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == state)
      out.push_back(asked(fd));
  }
  return out;
}

TEST(RedisHostile, AProgramThatIsStartedWhileAConnectionIsMadeDoesNotInheritIt) {
  const FullServer full;
  const auto connects = store(from_url("redis://" + full.address()), "jobs");
  EXPECT_TRUE(eventually([&] {
    EXPECT_FALSE(connects->read(within(10ms)));  // Somebody has to wait for the connection.
    const auto closed = of_sockets(TCP_SYN_SENT, [](int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; });
    return !closed.empty() && std::count(closed.begin(), closed.end(), false) == 0;
  }));
}

/// Otherwise it goes on for seconds, and the end of the process has to wait for it.
TEST(RedisHostile, AConnectionThatIsMadeEndsWithItsStore) {
  const FullServer full;
  const auto being_made = [] { return of_sockets(TCP_SYN_SENT, [](int) { return true; }).size(); };
  for (const auto& url : {"redis://" + full.address(), "redis+sentinel://" + full.address() + "/main"})
    EXPECT_TRUE(eventually([&] {  // A busy machine may end it a moment later.
      auto connects = store(from_url(url), "jobs");
      EXPECT_TRUE(eventually([&] {
        EXPECT_FALSE(connects->read(within(10ms)));
        return being_made() > 0;
      }));
      connects.reset();
      return being_made() == 0;
    })) << url;
}

TEST(RedisHostile, AServerThatTakesNoConnectionIsReportedWithTheTimeItHad) {
  const FullServer full;
  const auto connects = store(from_url("redis://" + full.address()), "jobs");
  const auto read = connects->read(within(1min));
  ASSERT_FALSE(read);
  EXPECT_TRUE(tenure::test::mentions(read.error().message, "TCP took longer than 2000 ms")) << read.error().message;
}

// ---- several addresses, several servers ----

constexpr std::uint32_t second_loopback = INADDR_LOOPBACK + 1;  // 127.0.0.2
const std::string node_of_a_cluster = "$20\r\n\ncluster_enabled:1\r\n\r\n";

/// Serves as a node of a cluster that has no record.
struct EmptyServer : FakeRedis {
  EmptyServer() : FakeRedis(no_record, node_of_a_cluster) {}
};

TEST(RedisHostile, ANameWhoseFirstAddressIsAwayIsReachedByTheNext) {
  EmptyServer serves;
  EXPECT_TRUE(open_at(serves.at("both.two"))->read(within(20s)));
  const FakeSentinel sentinel(serves.server.port(), "both.two");
  const auto watched =
      store(from_url("redis+sentinel://both.two:" + std::to_string(sentinel.port()) + "/main"), "jobs", no_log);
  const auto error = error_of(watched->read(within(20s)));
  EXPECT_TRUE(tenure::test::mentions(error.message, serves.at("both.two") + " (127.0.0.1): it is not a master"))
      << error.message;
}

TEST(RedisHostile, IfNoAddressOfANameAnswersOneIsNamedWithItsError) {
  const auto error = error_of(open_at("both.two:1")->read(within(20s)));
  EXPECT_TRUE(tenure::test::mentions(error.message, "redis both.two:1 (127.0.0.2): Connection refused"))
      << error.message;
}

/// A step of connecting may take 2 s. Without that memory every connection that breaks would cost as much.
TEST(RedisHostile, AConnectionThatBreaksIsNotMadeAnewByWayOfWhatIsAway) {
  EmptyServer serves;
  const FullServer away(serves.server.port(), second_loopback);
  for (const auto& servers : {serves.at("both.two"), serves.at("127.0.0.2") + "," + serves.server.address()}) {
    const auto a = open_at(servers);
    EXPECT_TRUE(a->read(within(1min))) << servers;
    serves.hangs_up = true;
    EXPECT_TRUE(a->read(within(20s))) << "its answer comes before its end";
    serves.hangs_up = false;
    EXPECT_TRUE(tenure::test::reads_before_it_times_out(*a, 1900ms)) << servers;
  }
}

/// As one that was demoted, while its name already has the new master's address, too.
TEST(RedisHostile, AServerThatAnswersAndDoesNotServeIsLeftForTheNextAddressOfItsName) {
  EmptyServer serves;
  const FakeRedis demoted("-READONLY You can't write against a read only replica.\r\n", "+OK\r\n", serves.server.port(),
                          second_loopback);
  const auto a = open_at(serves.at("both.two"));
  EXPECT_TRUE(tenure::test::mentions(error_of(a->read(within(20s))).message, "READONLY"));
  EXPECT_TRUE(a->read(within(20s)));
}

// ---- commands that are refused ----

/// As a proxy or an ACL does it. An election needs none of these.
TEST(RedisHostile, WhoRefusesWhatWeCanDoWithoutElectsAllTheSame) {
  for (const std::string refusal :
       {"-ERR unknown command 'INFO', with args beginning with: 'memory' \r\n", "-ERR this proxy has no INFO\r\n",
        "-NOPERM User u has no permissions to run the 'info' command\r\n", "-UNSUPPORTED\r\n", "+\r\n", ":7\r\n",
        "*1\r\n$-1\r\n"}) {
    const FakeRedis proxy(no_record, refusal);
    EXPECT_TRUE(store(from_url("redis://" + proxy.address()), "jobs")->read(within(20s))) << refusal;
  }
}

TEST(RedisHostile, ARefusalNamesTheCommand) {
  const auto expect = [](const std::string& answer, const std::string& words) {
    const FakeRedis proxy(answer);
    const auto error = error_of(open_at(proxy.address())->read(within(20s)));
    EXPECT_TRUE(tenure::test::mentions(error.message, words)) << error.message;
  };
  expect("-ERR unknown command 'EVALSHA', with args\r\n", "does not support EVALSHA");
  expect("-ERR unknown command `eval`, with args\r\n", "does not support eval");
  expect("-NOPERM this user has no permissions to run the 'hset' command or its subcommand\r\n", "may not run hset");
  expect("-ERR not here\r\n", "refuses EVALSHA: ERR not here");

  FakeServer mute([](const std::string& request) {
    const bool subscribes = request.find("SUBSCRIBE") != request.npos;
    return FakeServer::Answer{to_each(request, subscribes ? "-ERR not here\r\n" : "+OK\r\n")};
  });
  Lines lines;
  const auto a = store(from_url("redis://" + mute.address()), "jobs", lines.log());
  EXPECT_TRUE(eventually([&] {
    a->await_change(std::nullopt, within(50ms));
    return lines.mention("refuses SUBSCRIBE: ERR not here");
  }));
}

/// hiredis takes care of that only where it waits for the connection itself.
TEST(RedisHostile, NoCommandIsHeldBackForAnAnswer) {
  TENURE_NEEDS_REDIS();
  Server server;
  const auto asks = store(from_url("redis://" + server.address()), "jobs");
  EXPECT_FALSE(read(*asks).record);
  const auto at_once = of_sockets(TCP_ESTABLISHED, [](int fd) {
    int on = 0;
    socklen_t size = sizeof on;
    return ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size) == 0 && on != 0;
  });
  EXPECT_FALSE(at_once.empty());
  EXPECT_EQ(std::count(at_once.begin(), at_once.end(), false), 0);
}

// ---- fork ----

/// The threads that ask the Sentinels are the parent's, and may have held a lock at the fork.
TEST(RedisHostile, AForkedChildWaitsForNoSentinel) {
  const auto parents = store(from_url("redis+sentinel://127.0.0.1:1/main"), "jobs");
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer does not follow a child of a process with threads";
#endif
  tenure::test::in_child([&] {
    const auto read = parents->read(within(1min));
    return !read && tenure::test::mentions(read.error().message, "fork");
  });
}

}  // namespace
}  // namespace tenure::redis::test
