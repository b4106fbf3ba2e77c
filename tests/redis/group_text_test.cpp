// SPDX-License-Identifier: Apache-2.0
// Goal: what servers answer about a group, and what is pushed, is understood or refused, whatever it is. Method:
// replies made by hand.
#include "group_text.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include <tenure/kit/who.hpp>

#include "support.hpp"

namespace tenure::redis {
namespace {

using namespace std::chrono_literals;

const std::string group = "tenure:{shards}";

Reply text(std::string s) { return {.kind = Reply::Kind::text, .text = std::move(s)}; }
Reply number(long long n) { return {.kind = Reply::Kind::integer, .integer = n}; }
Reply list(std::vector<Reply> all) { return {.kind = Reply::Kind::list, .list = std::move(all)}; }

const std::string a_session = "18446744073709551615 0 999 123456789 1500 3 7 4 5 name=h;address=a",
                  a_lead = "7 9223372036854775807 0 -";

Reply look(std::vector<Reply> sessions = {text(""), text("1 5"), text("9"), text(a_session)},
           std::vector<Reply> leads = {text(""), text("1 5"), text("x"), text(a_lead)}) {
  return list({text("1700000000123"), text("1 5"), list(std::move(sessions)), number(1), list(std::move(leads)),
               text("8-0 4")});
}

Fault fault_of(const Reply& reply) { return test::error_of(look_of(reply, group)).fault; }

TEST(RedisGroupText, ALookIsRead) {
  const auto found = test::value(look_of(look(), group));
  EXPECT_EQ(found.now_ms, 1700000000123);
  EXPECT_EQ(found.marker, 5u);
  EXPECT_TRUE(found.whole);
  EXPECT_EQ(found.cursor, "8-0 4");
  ASSERT_EQ(found.sessions.size(), 1u);
  const auto& [record, joined, names, weight, most] = found.sessions.at({9});
  EXPECT_EQ(record.beat, std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(record.released);
  EXPECT_EQ(record.written_ms, 999);
  EXPECT_EQ(record.asked, 123456789ns);
  EXPECT_EQ(record.term, 1500ms);
  EXPECT_EQ(record.who, "name=h;address=a");
  EXPECT_EQ(joined, 3u);
  EXPECT_EQ(names, 7u);
  EXPECT_EQ(weight, 4u);
  EXPECT_EQ(most, 5u);
  EXPECT_EQ(found.leads, (std::map<std::string, Lead>{{"x", {.token = {7}, .session = {INT64_MAX}}}}));
}

TEST(RedisGroupText, ALeadMayHaveAnHeirAndARequest) {
  const auto found = test::value(look_of(look({}, {text("x"), text("7 9 1 8 6 2 a why")}), group)).leads.at("x");
  EXPECT_EQ(found, (Lead{.token = {7},
                         .session = {9},
                         .released = true,
                         .heir = SessionId{8},
                         .step_down = StepDown{{6}, "a ", "why"}}));
}

TEST(RedisGroupText, WhatWeDidNotWriteIsRefused) {
  for (const std::string lead :
       {"", "7", "7 9", "7 9 0", "7 9 0 ", "7 9 2 -", "07 9 0 -", "-7 9 0 -", "7 9 0 --", "7 9 0 - 1",
        "7 9 0 - 1 101 x", "7 9 0 - 1 5 abcd", "4611686018427387905 9 0 -", "7  9 0 -"}) {
    const auto found = test::value(look_of(look({}, {text("x"), text(lead), text("y"), text("7 9 0 -")}), group));
    ASSERT_TRUE(found.unreadable.contains("x")) << lead;
    EXPECT_EQ(found.unreadable.at("x").fault, Fault::corrupt);
    EXPECT_EQ(found.leads.size(), 1u) << "the other lead is told";
  }
  for (const auto& session :
       {std::string(), std::string("1"), std::string("1 0 2 3 4 5 6 7"), std::string("1 2 2 3 4 5 6 7 8 "),
        std::string("1 0 -2 3 4 5 6 7 8 "), std::string("1 0 2 3 99999999999999 5 6 7 8 "),
        std::string("1 0 2 3 4 4294967296 6 7 8 "), std::string("1 0 2 3 4 5 6 4294967296 8 "),
        std::string("1 0 2 3 4 5 6 7 4294967296 "), "1 0 2 3 4 5 6 7 8 " + std::string(max_who_bytes + 1, 'x'),
        std::string("x 0 2 3 4 5 6 7 8 ")})
    EXPECT_EQ(fault_of(look({text("9"), text(session)}, {})), Fault::corrupt) << session;
  for (const std::string id : {"-9", "09", "x", "18446744073709551616"})
    EXPECT_EQ(fault_of(look({text(id), text(a_session)}, {})), Fault::corrupt) << id;
  for (const std::string marker : {"1", "1 0", "1 x", "2 5", "x", "1 5 5", " "}) {
    auto reply = look();
    reply.list[1] = text(marker);
    EXPECT_EQ(fault_of(reply), Fault::corrupt) << marker;
  }
}

TEST(RedisGroupText, AnAnswerThatNoScriptGivesIsAnError) {
  for (std::size_t i = 0; i < 6; ++i) {
    auto wrong = look();
    wrong.list[i] = Reply{};
    EXPECT_EQ(fault_of(wrong), Fault::corrupt) << i;
    wrong.list.erase(wrong.list.begin());
    EXPECT_EQ(fault_of(wrong), Fault::corrupt) << i;
  }
  for (const std::string now : {"", "x", "-1", "1125899906842625", "9223372036854775808"}) {
    auto wrong = look();
    wrong.list[0] = text(now);
    EXPECT_EQ(fault_of(wrong), Fault::corrupt) << now;
  }
  EXPECT_EQ(fault_of(look({text("9")}, {})), Fault::corrupt) << "no pair";
  EXPECT_EQ(fault_of(look({Reply{}, text(a_session)}, {})), Fault::corrupt);
  EXPECT_EQ(fault_of(look({}, {text("x"), number(1)})), Fault::corrupt);
  EXPECT_TRUE(test::value(look_of(look({}, {text("x"), Reply{}}), group)).leads.empty()) << "deleted meanwhile";
  Commit commit;
  commit.claims = {{"x", std::nullopt}};
  const auto committed = [&](Reply claimed) {
    return committed_of(list({number(1), text("7"), list({std::move(claimed)}), list({}), look()}), commit, group);
  };
  EXPECT_EQ(test::value(committed(number(1))).claimed, std::vector<std::string>{"x"});
  for (const auto& claimed : {number(0), number(2), number(-1), text("1"), Reply{}})
    EXPECT_EQ(test::error_of(committed(claimed)).fault, Fault::corrupt);
}

// ---- pushes ----

TEST(RedisGroupText, WhatLiesBehindTheCursorIsNews) {
  for (const std::string message : {"8-1", "9-0", "10-0", "8-1 released 7 - x", "", "x", "8", "8-", "-1"})
    EXPECT_TRUE(is_news(message, "8-0 4")) << message;
  for (const std::string message : {"8-0", "7-9", "1-0 released 7 - x"}) {
    EXPECT_FALSE(is_news(message, "8-0 4")) << message;
    EXPECT_TRUE(is_news(message, "")) << message;
  }
}

TEST(RedisGroupText, ASingleReleaseIsNamed) {
  const auto named = release_in("8-0 released 18446744073709551615 9 a b ");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->token.value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(named->heir, SessionId{9});
  EXPECT_EQ(named->election, "a b ");
  EXPECT_FALSE(release_in("8-0 released 7 - x")->heir);
  for (const std::string message :
       {"", "8-0", "8-0 released", "8-0 released 7", "8-0 released 7 -", "8-0 released 7 - ", "8-0 released x - x",
        "8-0 released 7 x x", "x released 7 - x", "8-0 freed 7 - x", "8-0 released 18446744073709551616 - x"})
    EXPECT_FALSE(release_in(message)) << message;
  EXPECT_FALSE(release_in("8-0 released 7 - " + std::string(201, 'x')));
}

}  // namespace
}  // namespace tenure::redis
