// SPDX-License-Identifier: Apache-2.0
// Goal: `tenure run` ends a command that tells of no progress, and tells by HTTP and to a service manager what it does.
// Method: runs it over a file store, and plays the service manager.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "client.hpp"
#include "fake_server.hpp"
#include "messages.hpp"
#include "run_tool.hpp"

namespace tenure::test {
namespace {

/// Prints its port, and never ends its answer: a byte now and then.
const char dripping_server[] =
    "import socket, time\n"
    "listener = socket.create_server(('127.0.0.1', 0))\n"
    "print(listener.getsockname()[1], flush=True)\n"
    "client = listener.accept()[0]\n"
    "client.sendall(b'HTTP/1.1 200 OK\\r\\nX-Long: ')\n"
    "while True: time.sleep(0.02), client.sendall(b'x')\n";

class WatchedRun : public RunTool {
 protected:
  /// Where the tool says that it serves.
  static std::string address(const Process& run) {
    const std::string before = "http://";
    EXPECT_TRUE(eventually([&] { return mentions(run.err(), before) && mentions(run.err(), "/ election="); }))
        << run.err();
    const auto text = run.err();
    const auto start = text.find(before) + before.size();
    return text.substr(start, text.find('/', start) - start);
  }
  static Words with_variable(const std::string& variable, const Words& words) {
    Words out{"env", variable};
    out.insert(out.end(), words.begin(), words.end());
    return out;
  }

  /// A command that does this whenever the file `go` is there, and takes it away.
  std::string on_go(const std::string& what) const {
    return "while :; do [ -e " + path("go") + " ] && rm " + path("go") + " && " + what + "; sleep 0.01; done";
  }

  /// Lets it go, and waits until the tool has heard of progress.
  void expect_progress(const Process& run) {
    const auto since = [at = address(run)] {
      const auto ms = fetch(at, "/status").json()["health"]["since_progress_ms"];
      return ms.is_number() ? ms.get<std::int64_t>() : -1;
    };
    ASSERT_TRUE(eventually([&] { return since() > 100; }));
    const auto before = since();
    files_.file("go", "");
    EXPECT_TRUE(eventually([&] { return since() < before; })) << run.err();
  }
};

TEST_F(WatchedRun, ACommandThatReportsNoProgressIsEnded) {
  Process run(shell({"--once", "--stall-after", "200ms"}, for_ever));
  EXPECT_EQ(run.ended(), 79) << run.err();
  EXPECT_TRUE(mentions(run.err(), "stalled"));
}

TEST_F(WatchedRun, AServerThatDripsHoldsUpNobodyWhoAsks) {
  const Process server({"/usr/bin/python3", "-c", dripping_server});
  ASSERT_TRUE(begun(server)) << server.err();
  Process asks(
      tool({"is-leader", "--http", "127.0.0.1:" + std::to_string(std::stoi(server.out())), "--timeout", "500ms"}));
  EXPECT_EQ(asks.ended(), 4);
  EXPECT_TRUE(mentions(asks.err(), "does not answer within 0.5 s")) << asks.err();
}

TEST_F(WatchedRun, AfterAStallAnotherOneLeadsFirstAndAtOnce) {
  Process stalled(shell({"--term", "30s", "--stall-after", "1s", "--id", "ann"}, "echo runs; " + for_ever));
  ASSERT_TRUE(begun(stalled)) << stalled.err();
  const Lateness since;
  Process next(shell({"--term", "30s"}, "echo next"));
  EXPECT_EQ(next.ended(), 0) << next.err();
  EXPECT_TRUE(in_time(since, std::chrono::seconds(15))) << "it waited for the end of the lease";
  EXPECT_EQ(stalled.out(), "runs\n") << "its pause is a minute";
}

TEST_F(WatchedRun, WhenThePauseIsOverItCampaignsAgain) {
  Process run(shell({"--stall-after", "200ms", "--stall-pause", "100ms"}, "echo runs; " + for_ever));
  EXPECT_TRUE(eventually([&] { return lines(run.out()) >= 2; })) << run.err();
}

TEST_F(WatchedRun, WhatACommandWritesToItsDescriptorIsProgress) {
  Process run(shell({"--stall-after", "1h", "--progress-fd", "7", "--http", "127.0.0.1:0"}, on_go("echo >&7")));
  expect_progress(run);
}

TEST_F(WatchedRun, TheWatchdogOfSdNotifyIsProgress) {
  const std::string notify =
      "/usr/bin/python3 -c 'import os, socket; "
      "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"STATUS=x\\nWATCHDOG=1\", "
      "os.environ[\"NOTIFY_SOCKET\"])'";
  Process run(shell({"--stall-after", "1h", "--http", "127.0.0.1:0"}, "echo $WATCHDOG_USEC; " + on_go(notify)));
  expect_progress(run);
  EXPECT_EQ(run.out(), "3600000000\n");
}

TEST_F(WatchedRun, TheSocketOfTheWatchdogGoesWithTheToolAlsoIfThatIsKilled) {
  Process run(shell({"--stall-after", "1h"}, "echo $NOTIFY_SOCKET; " + for_ever));
  ASSERT_TRUE(begun(run)) << run.err();
  const auto socket = run.out().substr(0, run.out().size() - 1);
  EXPECT_TRUE(std::filesystem::is_socket(socket)) << socket;
  run.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(std::filesystem::path(socket).parent_path()); }));
}

TEST_F(WatchedRun, WhatCannotBeWatchedIsRefused) {
  for (const auto& [options, code] :
       std::vector<std::pair<Words, int>>{{{"--progress-fd", "7"}, 64},
                                          {{"--stall-pause", "1s"}, 64},
                                          {{"--step-down-token-file", "/etc/passwd"}, 64},
                                          {{"--http-host", "x"}, 64},
                                          {{"--stall-after", "1s", "--progress-fd", "1"}, 64},
                                          {{"--stall-after", "1s", "--stall-pause", "2h"}, 78},
                                          {{"--http", "nowhere"}, 78}})
    EXPECT_EQ(Process(words(options, {"true"})).ended(), code) << options.front();
}

TEST_F(WatchedRun, ItServesItsStatusByHttp) {
  Process leader(shell({"--http", "127.0.0.1:0", "--id", "ann"}, "echo $TENURE_TOKEN; " + for_ever));
  const auto at = address(leader);
  ASSERT_TRUE(begun(leader)) << leader.err();
  const auto leads = fetch(at, "/leader");
  EXPECT_EQ(leads.status, 200);
  EXPECT_EQ(leads.json()["leader"]["token"].get<std::string>() + "\n", leader.out());
  Process waits(shell({"--http", "127.0.0.1:0"}, "true"));
  const auto there = address(waits);
  EXPECT_TRUE(eventually([&] { return fetch(there, "/leader").json()["leader"]["name"] == "ann"; }));
  EXPECT_EQ(fetch(there, "/healthz").status, 200);

  EXPECT_EQ(Process(tool({"is-leader", "--http", at})).ended(), 0);
  EXPECT_EQ(Process(tool({"is-leader", "--http", there})).ended(), 1);
  EXPECT_EQ(Process(tool({"is-leader", "--http", "127.0.0.1:1"})).ended(), 4);
  EXPECT_EQ(Process(tool({"is-leader"})).ended(), 64);
}

TEST(AskedByHttp, WhoAnswersToOtherNamesSaysSo) {
  const tenure::test::FakeServer server([](const std::string&) -> tenure::test::FakeServer::Answer {
    return {"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", true};
  });
  Process asks(tool({"is-leader", "--http", server.address()}));
  EXPECT_EQ(asks.ended(), 4);
  EXPECT_TRUE(mentions(asks.err(), "--http-host")) << asks.err();
}

TEST(AskedByHttp, WhatIsNoElectionsAnswerSaysNothing) {
  const std::string page = R"({"version":1,"leading":true})";
  for (const auto& [status, body] :
       std::vector<std::pair<std::string, std::string>>{{"200 OK", "<html>welcome</html>"},
                                                        {"200 OK", ""},
                                                        {"200 OK", "1"},
                                                        {"200 OK", R"({"version":"1","leading":true})"},
                                                        {"200 OK", R"({"version":1,"leading":false})"},
                                                        {"200 OK", page + std::string(100'000, ' ')},
                                                        {"503 Service Unavailable", "no healthy upstream"},
                                                        {"503 Service Unavailable", page}}) {
    SCOPED_TRACE(status + " " + body.substr(0, 40));
    const auto answer = "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
                        "\r\nConnection: close\r\n\r\n" + body;
    const FakeServer server([&](const std::string&) { return FakeServer::Answer{answer, true}; });
    EXPECT_EQ(Process(tool({"is-leader", "--http", server.address()})).ended(), 4);
  }
}

TEST_F(WatchedRun, ItIsAskedByTheNamesThatItIsGiven) {
  Process run(shell({"--http", "127.0.0.1:0", "--http-host", "reports", "--http-host", "reports.example"}, for_ever));
  const auto at = address(run);
  const auto status = [&](const std::string& host) {
    Client client(at);
    client.send("GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: " + host + "\r\n\r\n");
    client.await_end();
    return fetched(client.got()).status;
  };
  EXPECT_EQ(status("reports:8080"), 200);
  EXPECT_EQ(status("reports.example"), 200);
  EXPECT_EQ(status("evil.example"), 421);
}

TEST_F(WatchedRun, WhoHasTheTokenMayEndTheLeadByHttp) {
  const auto secret = "0123456789abcdef-" + canary;
  Process run(shell({"--http", "127.0.0.1:0", "--once", "--step-down-token-file", files_.file("token", secret + "\n")},
                    "echo runs; " + for_ever));
  ASSERT_TRUE(begun(run)) << run.err();
  EXPECT_EQ(fetch(address(run), "/step-down", "POST").status, 401);
  EXPECT_EQ(fetch(address(run), "/step-down", "POST", "Authorization: Bearer " + secret + "\r\n").status, 202);
  EXPECT_EQ(run.ended(), 79);
  EXPECT_FALSE(mentions(run.err(), canary));
}

TEST_F(WatchedRun, TheCommandFindsNoPasswordInItsEnvironment) {
  Process run(with_variable("TENURE_URL=" + url(),
                            tool({"run", "-e", "e", "--", "sh", "-c", "echo \"<$TENURE_URL>\"; echo $TENURE_STORE"})));
  EXPECT_EQ(run.ended(), 0) << run.err();
  EXPECT_EQ(run.out(), "<>\n" + url() + "\n");
}

/// Hears what a service manager hears.
class ServiceManagerOfTest {
 public:
  explicit ServiceManagerOfTest(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
  }
  ~ServiceManagerOfTest() { ::close(socket_); }
  ServiceManagerOfTest(const ServiceManagerOfTest&) = delete;
  ServiceManagerOfTest& operator=(const ServiceManagerOfTest&) = delete;

  bool hears(const std::string& message) {
    return eventually([&] {
      char text[2048];
      for (;;) {
        const auto got = ::recv(socket_, text, sizeof text, MSG_DONTWAIT);
        if (got < 0) return mentions(heard_, message);
        heard_ += std::string(text, static_cast<std::size_t>(got)) + "\n";
      }
    });
  }
  void forget() { heard_.clear(); }
  const std::string& heard() const { return heard_; }

 private:
  int socket_;
  std::string heard_;
};

TEST_F(WatchedRun, AServiceManagerHearsWhatItDoes) {
  ServiceManagerOfTest manager(path("notify"));
  Process leader(shell({"--id", "ann"}, "echo leads; " + for_ever));
  ASSERT_TRUE(begun(leader)) << leader.err();
  auto with = with_variable("NOTIFY_SOCKET=" + path("notify"),
                            shell({}, "echo \"<$NOTIFY_SOCKET$WATCHDOG_USEC>\"; " + for_ever));
  with.insert(with.begin() + 1, "WATCHDOG_USEC=200000");
  Process run(with);
  EXPECT_TRUE(manager.hears("READY=1\n")) << manager.heard();
  EXPECT_TRUE(manager.hears("STATUS=waits: ann leads\n")) << manager.heard();
  manager.forget();
  EXPECT_TRUE(manager.hears("WATCHDOG=1\n")) << "also while it waits";
  leader.signal(SIGTERM);
  EXPECT_TRUE(manager.hears("STATUS=leads with token ")) << manager.heard();
  manager.forget();
  EXPECT_TRUE(manager.hears("WATCHDOG=1\nWATCHDOG=1\n")) << manager.heard();
  // It keeps ten words of ours for us, and no more: so we hear on while we wait.
  EXPECT_TRUE(eventually([&] { return manager.hears("WATCHDOG=1\n") && run.out() == "<>\n"; }))
      << "that is not for the command: " << run.out();
  run.signal(SIGTERM);
  EXPECT_TRUE(manager.hears("STOPPING=1\n")) << manager.heard();
  EXPECT_EQ(run.ended(), 128 + SIGTERM);
}

TEST_F(WatchedRun, AServiceManagerThatHasGoneIsNoHarm) {
  EXPECT_EQ(Process(with_variable("NOTIFY_SOCKET=" + path("nobody"), words({}, {"true"}))).ended(), 0);
  EXPECT_EQ(Process(with_variable("NOTIFY_SOCKET=nonsense", words({}, {"true"}))).ended(), 0);
}

}  // namespace
}  // namespace tenure::test
