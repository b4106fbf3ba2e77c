// SPDX-License-Identifier: Apache-2.0
// Goal: what servers answer is understood or refused, whatever it is. Method: replies made by hand.
#include "record.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <tenure/kit/who.hpp>

#include "reply.hpp"
#include "sentinels.hpp"
#include "support.hpp"

namespace tenure::redis {
namespace {

using namespace std::chrono_literals;
using test::canary;

Reply text(std::string s) { return {.kind = Reply::Kind::text, .text = std::move(s)}; }
Reply error(std::string s) { return {.kind = Reply::Kind::error, .text = std::move(s)}; }
Reply list(std::vector<Reply> all) { return {.kind = Reply::Kind::list, .list = std::move(all)}; }

using Fields = std::vector<std::pair<std::string, std::string>>;

const Fields whole{{"format", "1"},   {"token", "7"},       {"beat", "18446744073709551615"},
                   {"released", "0"}, {"term_ms", "1500"},  {"asked_ns", "123456789"},
                   {"who", "name=h"}, {"written_ms", "999"}};

Fields with(Fields fields, const std::string& name, const std::string& value) {
  std::erase_if(fields, [&](const auto& field) { return field.first == name; });
  if (value != "(none)") fields.emplace_back(name, value);
  return fields;
}

Reply answer(const Fields& fields) {
  std::vector<Reply> flat;
  for (const auto& [name, value] : fields) {
    flat.push_back(text(name));
    flat.push_back(text(value));
  }
  return list({list({text("1700000000"), text("123456")}), list(std::move(flat))});
}

Result<Read> read(const Reply& reply) { return read_of(reply, "tenure:{jobs}"); }

TEST(RedisRecord, ARecordIsReadFromItsHash) {
  const auto found = test::value(read(answer(whole)));
  ASSERT_TRUE(found.record);
  EXPECT_EQ(found.record->token, Token{7});
  EXPECT_EQ(found.record->beat, std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(found.record->released);
  EXPECT_EQ(found.record->term, 1500ms);
  EXPECT_EQ(found.record->asked, 123456789ns);
  EXPECT_EQ(found.record->written_ms, 999);
  EXPECT_EQ(found.record->who, "name=h");
  EXPECT_EQ(found.now_ms, 1700000000123);
  EXPECT_FALSE(found.unreadable);
  EXPECT_FALSE(found.absence_certain);
  EXPECT_FALSE(found.same_clock);
  EXPECT_FALSE(found.step_down);
}

TEST(RedisRecord, AnEmptyHashIsNoRecord) { EXPECT_FALSE(test::value(read(answer({}))).record); }

TEST(RedisRecord, ARequestToStepDownStandsBeside) {
  auto fields = with(with(with(whole, "step_down_token", "7"), "step_down_by", "ops"), "step_down_why", "upgrade");
  const auto found = test::value(read(answer(fields)));
  ASSERT_TRUE(found.step_down);
  EXPECT_EQ(found.step_down->token, Token{7});
  EXPECT_EQ(found.step_down->by, "ops");
  EXPECT_EQ(found.step_down->why, "upgrade");
}

TEST(RedisRecord, ARecordThatSomebodyElseWroteToIsUnreadableButHasAVersion) {
  for (const auto& [name, value] : Fields{{"term_ms", "(none)"},
                                          {"term_ms", "-1"},
                                          {"term_ms", "1.5"},
                                          {"term_ms", "99999999999999"},
                                          {"asked_ns", "x"},
                                          {"released", "2"},
                                          {"released", ""},
                                          {"who", std::string(max_who_bytes + 1, 'x')},
                                          {"who", "(none)"},
                                          {"written_ms", "-5"},
                                          {"format", "(none)"},
                                          {"extra", "field"},
                                          {"step_down_token", "7"},
                                          {"step_down_by", "nobody"}}) {
    const auto found = test::value(read(answer(with(whole, name, value))));
    EXPECT_TRUE(found.unreadable) << name << "=" << value;
    ASSERT_TRUE(found.record);
    EXPECT_EQ(found.record->token, Token{7});
    EXPECT_EQ(found.record->beat, std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(found.record->who, "");
  }
}

TEST(RedisRecord, ARecordWithoutAVersionIsAnErrorWithTheRemedy) {
  for (const auto& [name, value] : Fields{{"token", "(none)"},
                                          {"token", ""},
                                          {"token", "07"},
                                          {"token", "-7"},
                                          {"token", "18446744073709551616"},
                                          {"beat", "(none)"},
                                          {"beat", "1e3"}}) {
    const auto error = test::error_of(read(answer(with(whole, name, value))));
    EXPECT_EQ(error.fault, Fault::corrupt) << name << "=" << value;
    EXPECT_NE(error.message.find("tenure:{jobs} is not a record"), error.message.npos) << error.message;
  }
}

TEST(RedisRecord, AnotherFormatIsRefused) {
  for (const std::string format : {"2", "0", "one", "1\n"}) {
    const auto error = test::error_of(read(answer(with(whole, "format", format))));
    EXPECT_EQ(error.fault, Fault::corrupt);
    EXPECT_NE(error.message.find("use the release that wrote it"), error.message.npos) << error.message;
    EXPECT_EQ(error.message.find('\n'), error.message.npos);
  }
}

TEST(RedisRecord, AnAnswerThatNoScriptGivesIsAnError) {
  const auto time = list({text("1"), text("2")});
  const Reply number{.kind = Reply::Kind::integer, .integer = 1};
  for (const auto& reply :
       {Reply{}, text("x"), number, list({}), list({time}), list({time, text("x")}), list({time, list({text("odd")})}),
        list({time, list({text("a"), Reply{}})}), list({list({text("1"), text("1000000")}), list({})}),
        list({list({text("9223372036854775"), text("1")}), list({})}), list({time, list({list({}), list({})})}),
        list({text("1"), list({})}), list({list({text("1")}), list({})}),
        list({list({text("-1"), text("0")}), list({})}), list({list({text("99999999999999999"), text("0")}), list({})}),
        list({list({Reply{}, Reply{}}), list({})}), list({time, list({}), list({})})}) {
    EXPECT_EQ(test::error_of(read(reply)).fault, Fault::corrupt);
    EXPECT_EQ(test::error_of(swap_of(list({number, reply}), "k")).fault, Fault::corrupt);
    EXPECT_EQ(test::error_of(swap_of(reply, "k")).fault, Fault::corrupt);
  }
}

TEST(RedisRecord, ANoticeNamesAVersion) {
  for (const bool released : {false, true}) {
    const auto notice = notice_of(released ? "7 11 released" : "7 11");
    ASSERT_TRUE(notice);
    EXPECT_EQ(notice->version, (Version{{7}, 11}));
    EXPECT_EQ(notice->released, released);
  }
  for (const std::string text : {"", "7", "7 ", " 7", "7 11 12", "a b", "7 -1", "18446744073709551616 1", " released",
                                 "7 released", "7 11  released", "7 11 released ", "7 11 RELEASED", "7 11 1 released"})
    EXPECT_FALSE(notice_of(text)) << text;
}

// ---- refusals ----

TEST(RedisReply, ARefusalsCodeIsFoundWhereverTheServerPutsIt) {
  EXPECT_EQ(code_of("WRONGTYPE Operation against a key"), "WRONGTYPE");
  EXPECT_EQ(code_of("ERR something"), "ERR");
  EXPECT_EQ(code_of("READONLY You can't write. script: 2cdb, on @user_script:7."), "READONLY");
  EXPECT_EQ(code_of("ERR Error running script (call to f_2cdb): @user_script:7: @user_script: 7: -READONLY You can't"),
            "READONLY");
  EXPECT_EQ(code_of("ERR Error running script (call to f_2cdb): @user_script:7: WRONGTYPE Operation"), "WRONGTYPE");
  EXPECT_EQ(code_of("ERR told of READONLY"), "ERR") << "not the server's own words";
  EXPECT_EQ(code_of(""), "");
  EXPECT_EQ(code_of("lower case"), "");
}

TEST(RedisReply, EveryRefusalIsClassified) {
  const std::vector<std::pair<std::string, Fault>> classes = {
      {"READONLY You can't write against a read only replica.", Fault::forbidden},
      {"LOADING Redis is loading the dataset in memory", Fault::unreachable},
      {"MASTERDOWN Link with MASTER is down", Fault::unreachable},
      {"BUSY Redis is busy running a script.", Fault::unreachable},
      {"OOM command not allowed when used memory > 'maxmemory'.", Fault::misconfigured},
      {"NOAUTH Authentication required.", Fault::forbidden},
      {"WRONGPASS invalid username-password pair", Fault::forbidden},
      {"NOPERM this user has no permissions to run the 'evalsha' command", Fault::forbidden},
      {"ERR ACL failure in script: User u has no permissions to run the 'hset' command", Fault::forbidden},
      {"ERR The user executing the script can't run this command or subcommand", Fault::forbidden},
      {"DENIED Redis is running in protected mode", Fault::forbidden},
      {"NOSCRIPT No matching script.", Fault::unreachable},
      {"CLUSTERDOWN The cluster is down", Fault::unreachable},
      {"TRYAGAIN Multiple keys request during rehashing of slot", Fault::unreachable},
      {"MISCONF Redis is configured to save RDB snapshots", Fault::misconfigured},
      {"NOREPLICAS Not enough good replicas to write.", Fault::unreachable},
      {"WRONGTYPE Operation against a key", Fault::misconfigured},
      {"ERR max number of clients reached", Fault::unreachable},
      {"ERR DB index is out of range", Fault::misconfigured},
      {"ERR SELECT is not allowed in cluster mode", Fault::misconfigured},
      {"ERR unknown command 'EVALSHA'", Fault::misconfigured},
      {"ERR AUTH <password> called without any password configured", Fault::misconfigured},
      {"SOMETHING new", Fault::unreachable}};
  for (const auto& [words, fault] : classes) {
    const auto error = explained(words, "redis h:1", true);
    EXPECT_EQ(error.fault, fault) << words;
    EXPECT_EQ(error.message.substr(0, 9), "redis h:1") << words;
  }
}

TEST(RedisReply, ARefusalNamesTheCommandTheKeysOrTheChannel) {
  const auto expect = [](const std::string& words, bool quote, const std::string& part) {
    const auto error = explained(words, "redis h:1", quote, "EVALSHA");
    EXPECT_NE(error.message.find(part), error.message.npos) << error.message;
  };
  expect("NOPERM User u has no permissions to run the 'client|setname' command", true, "may not run client|setname");
  expect("ERR ACL failure in script: User u has no permissions to run the 'hset' command", true, "may not run hset");
  expect("ERR The user executing the script can't run this command or subcommand", true,
         "may not run a command of our script");
  expect("NOPERM No permissions to access a key", true, "permit ~ and the prefix");
  expect("NOPERM this user has no permissions to access one of the keys used as arguments", true, "permit ~");
  expect("NOPERM No permissions to access a channel", true, "permit & and the prefix");
  expect("ERR unknown command 'FOO', with args", true, "does not support FOO");
  expect("ERR unknown command 'FOO', with args", false, "does not support EVALSHA");
  for (const std::string odd : {"ERR unknown command ", "ERR unknown command '", "ERR unknown command 'FOO",
                                "ERR unknown command 'F O'", "ERR unknown command ''"})
    expect(odd, true, "does not support ");
}

TEST(RedisReply, AnErrorThatMayHoldAPasswordIsNotQuoted) {
  EXPECT_NE(explained("ERR odd\n" + canary, "redis h:1", true).message.find("odd?" + canary), std::string::npos);
  EXPECT_EQ(explained("ERR odd " + canary, "redis h:1", false).message.find(canary), std::string::npos);
  EXPECT_EQ(explained("CANARY " + canary, "redis h:1", false).message.find("CANARY"), std::string::npos);
}

TEST(RedisReply, ARedirectionNamesWhereTo) {
  const auto moved = redirection(error("MOVED 3999 10.0.0.1:6381"), "from");
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->to.host, "10.0.0.1");
  EXPECT_EQ(moved->to.port, 6381);
  EXPECT_FALSE(moved->ask);
  const auto ask = redirection(error("ASK 3999 fe80::1:6381"), "from");
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->to.host, "fe80::1");
  EXPECT_TRUE(ask->ask);
  EXPECT_EQ(redirection(error("MOVED 3999 :6381"), "from")->to.host, "from") << "an unknown host means the same";
  EXPECT_EQ(redirection(error("MOVED 3999 ?:6381"), "from")->to.host, "from");
  for (const std::string text : {"MOVED", "MOVED ", "MOVED 1", "MOVED 1 host", "MOVED 1 host:", "MOVED 1 host:0",
                                 "MOVED 1 host:65536", "MOVED 1 host:x", "MOVED 1:2 host", "MOVEDX 1 h:1", "ERR MOVED"})
    EXPECT_FALSE(redirection(error(text), "from")) << text;
  EXPECT_FALSE(redirection(text("MOVED 1 h:1"), "from")) << "not an error";
}

/// It names the old master, and was given before. Then nothing else would come, and we stayed there: with a second
/// leader, once the old master could answer again.
TEST(RedisSwitch, AnAnswerThatAnAnnouncementHasOvertakenDoesNotCount) {
  const auto bulk = [](const std::string& s) { return "$" + std::to_string(s.size()) + "\r\n" + s + "\r\n"; };
  std::atomic<int> asked{0};
  test::FakeServer sentinel([&](const std::string& request) -> test::FakeServer::Answer {
    if (request.find("get-master") == request.npos) return {test::to_each(request, "+OK\r\n")};
    if (++asked == 2)
      sentinel.push(1, "*3\r\n" + bulk("message") + bulk("+switch-master") + bulk("main 127.0.0.1 1 127.0.0.1 2"));
    const auto answer = "*2\r\n" + bulk("127.0.0.1") + bulk(asked > 2 ? "2" : "1");
    return {"+OK\r\n" + (asked == 2 ? answer + answer : answer)};  // Nobody asked for the second.
  });
  Options options;
  options.servers = {{"127.0.0.1", static_cast<std::uint16_t>(sentinel.port())}};
  options.master = "main";
  Sentinels sentinels(options, "us");
  const auto port = [&](Clock::Time since) {
    const auto named = sentinels.master(since, test::within(10s));
    return named ? named->master.port : 0;
  };
  EXPECT_EQ(port(Clock::Time::min()), 1);
  EXPECT_EQ(port(boot_clock().now()), 2) << TENURE_PROMISE;
}

TEST(RedisSwitch, OfASentinelsAnnouncementHasTwoWholeAddresses) {
  const auto found = switch_of("main 10.0.0.1 6379 ::1 6380");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "main");
  EXPECT_TRUE(found->from.host == "10.0.0.1" && found->from.port == 6379);
  EXPECT_TRUE(found->to.host == "::1" && found->to.port == 6380);
  for (const auto* text : {"", "main", "main a 1 b", "main a 0 b 2", "main a 1 b 0", "main a 65536 b 2",
                           "main a 1 b 65536", "main a x b 2", "main a 1 b 2x", "main a -1 b 2", "main a 1 b +2"})
    EXPECT_FALSE(switch_of(text)) << text;
}

}  // namespace
}  // namespace tenure::redis
