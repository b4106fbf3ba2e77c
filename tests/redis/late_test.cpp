// SPDX-License-Identifier: Apache-2.0
// Goal: a caller is back by its limit in the midst of a question, and nobody is ever given another one's answer.
// Method: a server that says and takes each byte when the test wants it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/un.h>

#include <cstring>
#include <future>

#include <tenure/group_store.hpp>
#include <tenure/manual_clock.hpp>

#include "scratch.hpp"
#include "support.hpp"

namespace tenure::redis::test {
namespace {

using tenure::test::Scratch;

/// It listens on a Unix socket, whose buffers hold some 200 KiB. All of it fails the test rather than hang.
class Puppet {
 public:
  Puppet() : path_(scratch_ / "socket"), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 16) != 0)
      throw std::runtime_error("cannot listen on " + path_);
  }
  ~Puppet() {
    hang_up();
    ::close(listener_);
  }
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  std::string url() const { return "redis+unix://" + path_; }

  /// Takes the next connection, and answers its introduction of so many commands.
  void accept(int commands) {
    hang_up();
    ASSERT_TRUE(readable(listener_)) << "nobody connects";
    connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    hear(commands == 1 ? "SETNAME" : "INFO");
    for (int i = 0; i < commands; ++i) say("+OK\r\n");
  }
  /// Reads on until it has read this.
  void hear(const std::string& words) {
    while (heard_.find(words) == heard_.npos) {
      char buffer[4096];
      ASSERT_TRUE(readable(connection_)) << "it never says " << words;
      const auto got = ::read(connection_, buffer, sizeof buffer);
      ASSERT_GT(got, 0) << "it ended before it said " << words;
      heard_.append(buffer, static_cast<std::size_t>(got));
    }
    heard_.erase(0, heard_.find(words) + words.size());
  }
  void say(const std::string& bytes) const {
    EXPECT_EQ(::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// Whether the other end closes the connection.
  bool is_left() const {
    char buffer[4096];
    while (readable(connection_))
      if (::read(connection_, buffer, sizeof buffer) <= 0) return true;
    return false;
  }
  bool hears_nothing() const {
    pollfd one{connection_, POLLIN, 0};
    return ::poll(&one, 1, 0) == 0;
  }
  bool is_called() const {
    pollfd one{listener_, POLLIN, 0};
    return ::poll(&one, 1, 0) != 0;
  }
  void hang_up() {
    if (connection_ >= 0) ::close(std::exchange(connection_, -1));
    heard_.clear();
  }

 private:
  static bool readable(int descriptor) {
    pollfd one{descriptor, POLLIN, 0};
    return ::poll(&one, 1, 30'000) == 1;
  }

  const Scratch scratch_;
  const std::string path_;
  const int listener_;
  int connection_{-1};
  std::string heard_;
};

/// What the script of a sweep says that has removed so many sessions.
std::string count(int number) { return "*3\r\n$1\r\n0\r\n:" + std::to_string(number) + "\r\n*0\r\n"; }

/// Its questions have numbers for answers.
struct RedisLate : testing::Test {
  Puppet server;
  std::shared_ptr<GroupStore> group = open_group(from_url(server.url()), "shards");

  std::future<Result<int>> ask(Limit limit) {
    return std::async(std::launch::async, [this, limit = std::move(limit)] { return group->sweep(limit); });
  }
  void connect() {
    auto asked = ask(within(1min));
    server.accept(2);
    server.hear("EVALSHA");
    server.say(count(0));
    ASSERT_EQ(value(asked.get()), 0);
  }
  /// A question that its caller leaves once it was heard, and `said` was said to it.
  void leave(const std::string& said = {}) {
    std::stop_source stop;
    auto asked = ask(within(1h, stop.get_token()));
    server.hear("EVALSHA");
    if (!said.empty()) server.say(said);
    stop.request_stop();
    EXPECT_EQ(error_of(asked.get()).fault, Fault::timed_out);
  }
  /// The next question is heard, and gets this answer alone.
  void expect_next_gets(int number) {
    auto asked = ask(within(1min));
    server.hear("EVALSHA");
    server.say(count(number));
    EXPECT_EQ(value(asked.get()), number);
    EXPECT_FALSE(server.is_called()) << "it is the same connection";
  }
};

TEST_F(RedisLate, AnAnswerThatIsLateIsNotTheNextQuestions) {
  connect();
  leave();
  server.say(count(1));
  expect_next_gets(2);
}

TEST_F(RedisLate, ACallerLeavesAtItsLimitToo) {
  connect();
  ManualClock clock;
  auto asked = ask(within(30ms, clock));
  server.hear("EVALSHA");
  clock.advance(30ms);
  EXPECT_EQ(error_of(asked.get()).fault, Fault::timed_out);
  server.say(count(1));
  expect_next_gets(2);
}

TEST_F(RedisLate, NothingIsAskedBeforeTheLateAnswerHasCome) {
  connect();
  leave();
  ManualClock clock;
  auto next = ask(within(1h, clock));
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_TRUE(server.hears_nothing());
  server.say(count(1));
  server.hear("EVALSHA");
  server.say(count(2));
  EXPECT_EQ(value(next.get()), 2);
}

TEST_F(RedisLate, ACallerMayLeaveInTheMidstOfAnAnswer) {
  connect();
  leave(":1");
  server.say("7\r\n");
  expect_next_gets(2);
  leave("*2\r\n$5\r\nab");
  server.say("cde\r\n:1\r\n");
  expect_next_gets(3);
}

TEST_F(RedisLate, ALateWordThatAScriptIsUnknownIsNotTheNextQuestions) {
  connect();
  leave();
  server.say("-NOSCRIPT No matching script\r\n");
  expect_next_gets(2);
}

TEST_F(RedisLate, AnAnswerMayComeByteByByte) {
  connect();
  ManualClock clock;
  for (const auto& limit : {within(1h), within(1h, clock)}) {
    auto asked = ask(limit);
    server.hear("EVALSHA");
    for (const char byte : std::string("-NOSCRIPT\r\n")) server.say({byte});
    server.hear("EVAL\r\n");
    for (const char byte : count(12)) server.say({byte});
    EXPECT_EQ(value(asked.get()), 12);
  }
}

TEST_F(RedisLate, AQuestionThatTwoCallersWaitedForIsEnded) {
  connect();
  leave();
  ManualClock clock;
  auto asked = ask(within(30ms, clock));
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(30ms);
  const auto second = error_of(asked.get());
  EXPECT_NE(second.message.find("the connection is ended"), second.message.npos) << second.message;
  EXPECT_TRUE(server.is_left());
  connect();
  expect_next_gets(2);
}

TEST_F(RedisLate, AServerThatHangsUpInTheMidstIsAnErrorAndThenConnectedToAnew) {
  connect();
  auto asked = ask(within(1min));
  server.hear("EVALSHA");
  server.say(":1");
  server.hang_up();
  EXPECT_EQ(error_of(asked.get()).fault, Fault::unreachable);
  connect();
  leave(":1");
  server.hang_up();
  connect();
}

/// Some MiB, which end with a name.
Commit large_commit() {
  Commit commit;
  commit.session = {7};
  commit.beats = {1};
  commit.next.record.who = std::string(4 << 20, 'x');
  commit.claims = {{"the-last", std::nullopt}};
  return commit;
}

TEST_F(RedisLate, AWriteThatDoesNotDrainEndsAtItsLimitAndGoesOnLater) {
  connect();
  const auto large = large_commit();
  ManualClock clock;
  auto cut = std::async(std::launch::async, [&] { return group->commit(large, within(50ms, clock)); });
  server.hear("EVALSHA");
  clock.advance(50ms);
  EXPECT_EQ(error_of(cut.get()).fault, Fault::timed_out);
  auto next = ask(within(1min));
  server.hear("the-last\r\n");
  server.say("-ERR no\r\n");
  server.hear("EVALSHA");
  server.say(count(2));
  EXPECT_EQ(value(next.get()), 2);
}

TEST_F(RedisLate, AWriteThatDoesNotDrainEndsByAStopAndByTheServersEnd) {
  connect();
  const auto large = large_commit();
  std::stop_source stop;
  auto stopped = std::async(std::launch::async, [&] { return group->commit(large, within(1h, stop.get_token())); });
  server.hear("EVALSHA");
  stop.request_stop();
  EXPECT_EQ(error_of(stopped.get()).fault, Fault::timed_out);
  auto cut = std::async(std::launch::async, [&] { return group->commit(large, within(1h)); });
  server.hang_up();
  server.accept(2);
  server.hear("EVALSHA");
  server.hang_up();
  EXPECT_EQ(error_of(cut.get()).fault, Fault::unreachable);
}

// ---- notices ----

TEST(RedisLateNotices, ASubscriptionWhoseCallerLeftIsMadeOnTheSameConnection) {
  Puppet server;
  const auto jobs = store(from_url(server.url()), "jobs");
  const auto await = [&](Limit limit) {
    return std::async(std::launch::async, [&, limit] { return jobs->await_change(Version{{1}, 11}, limit); });
  };
  const std::string subscribed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
  const auto notice = [](const std::string& text) {
    return "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  std::stop_source stop;
  auto first = await(within(1h, stop.get_token()));
  server.accept(1);
  server.hear("SUBSCRIBE");
  stop.request_stop();
  first.get();
  server.say(subscribed + notice("1 12 released"));
  auto second = await(within(1h));
  server.hear("SUBSCRIBE");
  server.say(subscribed);
  EXPECT_EQ(second.get(), std::nullopt) << "what came before was not heard, and is read";
  auto third = await(within(1h));
  for (const char byte : notice("1 13 released")) server.say({byte});
  EXPECT_EQ(third.get(), (Version{{1}, 13}));
  std::stop_source again;
  auto fourth = await(within(1h, again.get_token()));
  again.request_stop();
  EXPECT_EQ(fourth.get(), std::nullopt);
  ManualClock clock;
  auto fifth = await(within(1h, clock));
  ASSERT_TRUE(clock.await_parked(1));
  server.say(notice("1 14 released"));
  EXPECT_EQ(fifth.get(), (Version{{1}, 14}));
}

}  // namespace
}  // namespace tenure::redis::test
