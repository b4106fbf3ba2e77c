// SPDX-License-Identifier: Apache-2.0
// Goal: clients that are slow, rude or many hold up nobody, and the end is quick. Method: such clients, through real
// sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <list>
#include <system_error>

#include "in_child.hpp"
#include "no_descriptors.hpp"
#include "process.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string events = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// So long that a test which waits for it fails.
const http::ServerOptions patient{.patience = 60s};

using HttpServer = OnAHub;
using HttpEvents = OnAHub;
using HttpSite = OnAHub;

TEST_F(HttpServer, ListensAtLoopbackByDefault) { EXPECT_EQ(Process(hub).server->address().rfind("127.0.0.1:", 0), 0u); }

TEST_F(HttpServer, AnAddressThatCannotBeIsRefused) {
  Process a(hub);
  for (const auto* wrong : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", ":8080",
                            "localhost:0", "::1:0", "[127.0.0.1]:0", "[::1]"})
    EXPECT_THROW(http::Server(*a.site, {.address = wrong}), std::invalid_argument) << wrong;
  try {
    const http::Server second(*a.site, {.address = a.server->address()});
    ADD_FAILURE() << "two servers share a port";
  } catch (const std::system_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(a.server->address()));
  }
}

TEST_F(HttpServer, TheProcesssSigpipeStaysAsItWas) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGPIPE, nullptr, &before);
  const Process a(hub);
  ::sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST_F(HttpServer, ClientsThatSendHalfARequestHoldUpNobody) {
  Process a(hub, {}, {}, {.connections = 4, .patience = 60s});
  std::list<Client> waiting;
  for (int i = 0; i < 50; ++i) waiting.emplace_back(a.server->address()).send(i % 2 ? "GET /lead" : "");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.get("/healthz").status, 200);
  EXPECT_TRUE(waiting.front().await_end()) << "the oldest gave way";
}

TEST_F(HttpServer, AnAnswerThatIsNotTakenAwayHoldsUpNobody) {
  Process a(hub, {}, {}, {.connections = 4, .patience = 60s});
  std::list<Client> answered;
  for (int i = 0; i < 20; ++i) {
    answered.emplace_back(a.server->address()).send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(answered.back().await("\"healthy\":true"));
  }
  EXPECT_EQ(a.get("/healthz").status, 200);
}

TEST_F(HttpServer, ARequestMustComeInTime) {
  Process a(hub, {}, {}, {.patience = 100ms});
  Client client(a.server->address());
  EXPECT_TRUE(client.send("GET /leader HT"));
  EXPECT_TRUE(client.await_end());
}

/// Each byte may be in time, the whole is not.
TEST_F(HttpServer, AClientThatSendsAByteNowAndThenIsCut) {
  Process a(hub, {}, {}, {.patience = 100ms});
  Client client(a.server->address());
  EXPECT_TRUE(eventually([&] { return !client.send("x"); }));
}

TEST_F(HttpServer, OversizedRequestsAreRefused) {
  Process a(hub, {}, {}, patient);
  const std::string big(1'000'000, 'x');
  for (const auto& request : {"GET /" + big + " HTTP/1.1\r\n\r\n", "GET /leader HTTP/1.1\r\nX: " + big + "\r\n\r\n",
                              "GET /leader HTTP/1.1\r\n" +
                                  [] {
                                    std::string many;
                                    for (int i = 0; i < 100'000; ++i) many += "a: b\r\n";
                                    return many;
                                  }() +
                                  "\r\n",
                              big, std::string(100'000, '\0')}) {
    Client client(a.server->address());
    client.send(request);
    EXPECT_TRUE(client.await_end());
    EXPECT_NE(fetched(client.got()).status, 200);
  }
  EXPECT_EQ(a.get("/healthz").status, 200);
}

TEST_F(HttpServer, ABodyIsNotWaitedFor) {
  Process a(hub, {}, {}, patient);
  for (const auto* kind : {"Content-Length: 1000000000\r\n", "Transfer-Encoding: chunked\r\n",
                           "Expect: 100-continue\r\nContent-Length: 10\r\n"}) {
    Client client(a.server->address());
    client.send("POST /step-down HTTP/1.1\r\nHost: localhost\r\n" + std::string(kind) + "\r\n");
    EXPECT_TRUE(client.await("no token is configured")) << kind;
  }
}

TEST_F(HttpServer, HeadersThatAskForMuchWorkAreHarmless) {
  Process a(hub);
  std::string ranges = "Range: bytes=0-0";
  for (int i = 0; i < 1500; ++i) ranges += ",0-0";
  const auto many = fetch(a.server->address(), "/healthz", "GET", ranges + "\r\nAccept-Encoding: gzip, br\r\n");
  EXPECT_EQ(many.status, 200);
  EXPECT_EQ(many.json()["healthy"], true);
  EXPECT_EQ(fetch(a.server->address(), "/healthz", "GET", "Range: bytes=99999999999999999999999-\r\n").status, 200);
}

TEST_F(HttpEvents, AreBoundedAndLeaveRoomForOthers) {
  Process a(hub, {}, {.streams = 2}, {.connections = 4, .patience = 60s});
  std::list<Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(a.server->address()).send(events);
    ASSERT_TRUE(clients.back().await("event: status"));
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.get("/events").status, 503);
  EXPECT_EQ(a.get("/healthz").status, 200);
  clients.pop_front();
  EXPECT_TRUE(eventually([&] {
    Client client(a.server->address());
    client.send(events);
    return client.await("event: status");
  })) << "the place of the one that went is free";
}

TEST_F(HttpEvents, EndWhenTheServerStops) {
  Process a(hub, {}, {}, patient);
  Client stream(a.server->address()), half(a.server->address());
  stream.send(events);
  half.send("GET /");
  ASSERT_TRUE(stream.await("event: status"));
  a.server->stop();
  EXPECT_TRUE(stream.await_end());
  EXPECT_TRUE(half.await_end());
  EXPECT_THAT(stream.got(), testing::EndsWith("0\r\n\r\n")) << "it was not cut in the middle";
  EXPECT_FALSE(Client(a.server->address()).await("x"));
}

TEST_F(HttpSite, MayEndUnderTheServerAndTheManagerAfterIt) {
  Process a(hub, {}, {.step_down_token = "0123456789abcdef"}, patient);
  a.lead();
  Client stream(a.server->address());
  stream.send(events);
  ASSERT_TRUE(stream.await("event: status"));
  a.site.reset();
  a.manager.reset();
  EXPECT_TRUE(stream.await_end());
  for (const auto* path : {"/leader", "/healthz", "/readyz", "/status", "/metrics", "/events"})
    EXPECT_EQ(a.get(path).status, 503) << path;
  EXPECT_EQ(a.step_down("0123456789abcdef").status, 503);
}

/// A page of somebody else's has its name lead to us (DNS rebinding): the browser then sends that name.
TEST_F(HttpServer, ARequestMustNameUs) {
  Process a(hub, {}, {}, {.hosts = {"Election.example:8080"}});
  const auto asked = [&](const std::string& host, const std::string& address = {}) {
    Client client(address.empty() ? a.server->address() : address);
    client.send("GET /healthz HTTP/1.1\r\nConnection: close\r\n" + (host.empty() ? "" : "Host: " + host + "\r\n") +
                "\r\n");
    client.await_end();
    return fetched(client.got()).status;
  };
  for (const auto* ours :
       {"127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "localhost:80", "LocalHost", "10.0.0.7", "election.example:80"})
    EXPECT_EQ(asked(ours), 200) << ours;
  for (const auto* other : {"evil.example", "127.evil.example", "localhost.evil.example:80", "[evil.example]"})
    EXPECT_EQ(asked(other), 421) << other;
  Process open(hub, {}, {}, {.address = "0.0.0.0:0"});
  const auto port = open.server->address().substr(open.server->address().rfind(':'));
  EXPECT_EQ(asked("evil.example", "127.0.0.1" + port), 421) << "also where others may ask";
  EXPECT_EQ(asked("127.0.0.1", "127.0.0.1" + port), 200);
  std::array<char, 256> own{};
  ASSERT_EQ(::gethostname(own.data(), own.size() - 1), 0);
  EXPECT_EQ(asked(own.data()), 200);
}

TEST_F(HttpServer, WhatIsNoHttpIsNotAnswered) {
  Process a(hub);
  const auto status = [&](const std::string& request) {
    Client client(a.server->address());
    client.send(request);
    client.await_end();
    return fetched(client.got()).status;
  };
  const std::string host = "Host: localhost\r\n", close = "Connection: close\r\n";
  EXPECT_EQ(status("GET /healthz HTTP/1.1\r\n" + host + close + "\r\n"), 200);
  EXPECT_EQ(status("GET /healthz HTTP/1.0\r\n\r\n"), 200) << "it knew no Host";
  for (const std::string& wrong :
       {"GET /healthz HTTP/1.1\r\n" + close + "\r\n", "GET /healthz HTTP/1.1\r\n" + host + host + close + "\r\n",
        "GET /healthz HTTP/1.1\r\n" + host + "no colon\r\n" + close + "\r\n",
        "GET /healthz HTTP/1.1\r\n" + host + "A : b\r\n" + close + "\r\n",
        "GET /healthz HTTP/1.1\r\n" + host + "A: b\nC: d\r\n" + close + "\r\n",
        "GET /healthz HTTP/1.1\r\n" + host + "A: \x01\r\n" + close + "\r\n",
        "GET  /healthz HTTP/1.1\r\n" + host + close + "\r\n", "GET /healthz HTTP/1.1 x\r\n" + host + close + "\r\n",
        "GET /healthz HTTP/7.7\r\n" + host + close + "\r\n", "G(T /healthz HTTP/1.1\r\n" + host + close + "\r\n",
        "GET /healthz HTTP/1.1\r\n" + host + "Authorization: a\r\nAuthorization: b\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n" + host + "A: " + std::string(20'000, 'b') + "\r\n\r\n",
        std::string("GET /healthz HTTP/1.0\n\n")})
    EXPECT_EQ(status(wrong), 400) << wrong;
}

/// Events have no end, so by HTTP/1.1 they come in chunks, and HTTP/1.0 knows none.
TEST_F(HttpServer, EventsComeInChunksOnlyByHttp11) {
  Process a(hub);
  const auto begin_of = [&](const std::string& request) {
    Client client(a.server->address());
    client.send(request + "\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(client.await("\n\n")) << request;
    return fetched(client.got());
  };
  const auto by11 = begin_of("GET /events HTTP/1.1"), by10 = begin_of("GET /events HTTP/1.0");
  EXPECT_THAT(by11.head, HasSubstr("\r\nTransfer-Encoding: chunked"));
  const auto size = std::stoul(by11.body, nullptr, 16);
  const auto chunk = by11.body.substr(by11.body.find("\r\n") + 2);
  EXPECT_EQ(chunk.substr(0, size).substr(size - 2), "\n\n") << by11.body;
  for (const auto* framing : {"Transfer-Encoding", "Content-Length"})
    EXPECT_THAT(by10.head, testing::Not(HasSubstr(framing)));
  EXPECT_EQ(by10.body.substr(0, 5), chunk.substr(0, 5)) << "it begins at once";
}

/// As we decode it, and as another server may hand it on.
TEST_F(HttpServer, APathThatIsNotVisibleAsciiIsRefused) {
  const Process a(hub);
  for (const auto* path : {"/leader%0D", "/%FF", "/leader%7F", "/a%20b", "/%00"})
    EXPECT_EQ(a.get(path).status, 400) << path;
  for (const auto* path : {"/leader\r", "/\xff", "/a b", "/\x7f"})
    EXPECT_EQ(a.site->answer({.method = "GET", .path = path}).status, 400) << path;
  EXPECT_EQ(a.get("/%6Ceader").status, 503) << "this is /leader";
}

/// Clients are processes of their own, so that they take no descriptor of ours.
TEST_F(HttpServer, ClientsLeaveTheStoreSomeDescriptors) {
  TENURE_NEEDS_NO_DESCRIPTORS();
  Process a(hub, {}, {}, {.connections = 100, .patience = 60s});
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  const rlimit few{static_cast<rlim_t>(next) + 24, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto clients = ::fork();
  if (clients == 0) {
    ::setrlimit(RLIMIT_NOFILE, &before);
    std::list<Client> all;
    for (int i = 0; i < 60; ++i) all.emplace_back(a.server->address()).send("GET /lead");
    if (all.back().await_end()) ::raise(SIGSTOP);  // the others keep their connections
    ::_exit(1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(clients, &status, WUNTRACED), clients);
  EXPECT_TRUE(WIFSTOPPED(status)) << "the last one was let in";
  std::list<int> opened;
  for (int fd = 0; (fd = ::dup(STDERR_FILENO)) >= 0;) opened.push_back(fd);
  EXPECT_GE(opened.size(), 15U);
  for (const int fd : opened) ::close(fd);
  ::kill(clients, SIGKILL);
  ::waitpid(clients, &status, 0);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(HttpServer, WhereNoDescriptorIsAllowedItSleeps) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "such a child may not use threads under ThreadSanitizer";
#endif
  in_child([&] {
    const Process a(hub);
    return rests_where_poll_is_refused();
  });
}

/// The child has none of the threads, and may have been forked while one of them held a lock.
TEST_F(HttpServer, AForkedChildAnswersNothingAndMayDestroyIt) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "such a child may not use threads under ThreadSanitizer";
#endif
  Process a(hub);
  a.lead();
  in_child([&] {
    const auto answer = a.site->answerer();
    const bool refused = answer({.method = "GET", .path = "/leader"}).status == 503 &&
                         answer({.method = "GET", .path = "/healthz"}).status == 503;
    a.server->stop();
    a.server.reset();
    a.site.reset();
    return refused && answer({.method = "GET", .path = "/leader"}).status == 503;
  });
  EXPECT_EQ(a.get("/leader").status, 200);
}

}  // namespace
}  // namespace tenure::test
