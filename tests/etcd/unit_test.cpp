// SPDX-License-Identifier: Apache-2.0
// Goal: URLs, records and answers are read strictly, and whoever is refused learns why. Method: texts, without a
// server.
#include <gtest/gtest.h>

#include <stdexcept>

#include <tenure/etcd.hpp>
#include <tenure/kit/who.hpp>

#include "gateway.hpp"
#include "messages.hpp"
#include "options.hpp"
#include "refusal.hpp"
#include "store_calls.hpp"

namespace tenure::etcd {
namespace {

using tenure::test::canary;
using tenure::test::expect_error;
using tenure::test::mentions;
using tenure::test::record;
using tenure::test::value;

// ---- base64 ----

TEST(EtcdBase64, IsThatOfRfc4648) {
  const std::pair<std::string, std::string> vectors[] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xfb\xff\xbf", "+/+/"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  for (const std::string text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9-", "====", "Zm9v\n", "Zm9v===="})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

// ---- options ----

std::string refusal(const std::string& url) {
  return tenure::test::refusal_of([&] { checked(from_url(url)); });
}

TEST(EtcdOptions, AUrlNamesMembersAndSettings) {
  const auto plain = from_url("etcd://u%40x:p%3Aw@h1,[::1]:7?prefix=app/");
  EXPECT_EQ(plain.servers, (std::vector<Address>{{"h1", 2379}, {"::1", 7}}));
  EXPECT_EQ(plain.user, "u@x");
  EXPECT_EQ(plain.password, "p:w");
  EXPECT_EQ(plain.prefix, "app/");
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(to_string(plain.servers[1]), "[::1]:7");

  const auto secured = from_url("etcds://h/?ca_file=a&cert_file=b&key_file=c");
  EXPECT_TRUE(secured.tls);
  EXPECT_EQ(secured.ca_file + secured.cert_file + secured.key_file, "abc");
  EXPECT_EQ(secured.prefix, "tenure/");
}

TEST(EtcdOptions, WhatCanNeverWorkIsRefusedWithWhatWouldBeRight) {
  EXPECT_TRUE(mentions(refusal("etcd:///x"), "names no host; write etcd://host:2379"));
  EXPECT_TRUE(mentions(refusal("etcd://h/reports"), "has a path"));
  EXPECT_TRUE(mentions(refusal("etcd://h/reports"), "?prefix="));
  EXPECT_TRUE(mentions(refusal("http://h"), "use etcd, or etcds for TLS"));
  EXPECT_TRUE(mentions(refusal("etcd://h:0"), "port"));
  EXPECT_TRUE(mentions(refusal("etcd://u@h"), "without a password"));
  EXPECT_TRUE(mentions(refusal("etcd://:" + canary + "@h"), "without a user"));
  EXPECT_FALSE(mentions(refusal("etcd://:" + canary + "@h"), canary));
  EXPECT_TRUE(mentions(refusal("etcd://h?ca_file=x"), "write etcds://"));
  EXPECT_TRUE(mentions(refusal("etcds://h?cert_file=x"), "cert_file and key_file belong together"));
  EXPECT_TRUE(mentions(refusal("etcd://h?prefx=x"), "did you mean \"prefix\""));
  EXPECT_TRUE(mentions(refusal("etcd://h?prefix=" + std::string(101, 'x')), "at most 100 bytes"));
  EXPECT_THROW(checked(Options{}), std::invalid_argument);
}

TEST(EtcdOptions, DifferentElectionsHaveDifferentKeys) {
  const Options options;
  EXPECT_EQ(keys_of(options, "a").record, "tenure/record/a");
  EXPECT_EQ(keys_of(options, "a").news, "tenure/news/a");
  EXPECT_EQ(keys_of(options, "a").step_down, "tenure/step_down/a");
  EXPECT_THROW(keys_of(options, ""), std::invalid_argument);
}

TEST(EtcdOptions, AKeyIsThatOfAnElectionOrOfNone) {
  const Options options{.prefix = "p/"};
  for (const std::string name : {"a", "a/b", "record/x", "\xff"})
    EXPECT_EQ(election_of(options, keys_of(options, name).record), name);
  EXPECT_EQ(election_of(options, keys_of(options, "a").news), std::nullopt);
  for (const auto& key :
       {std::string("p/record/"), "p/record/" + std::string(201, 'x'), std::string("p/record/\0", 10)})
    EXPECT_EQ(election_of(options, key), std::nullopt) << key;
}

// ---- records ----

TEST(EtcdRecord, IsReadAsItWasWritten) {
  auto made = record(UINT64_MAX, UINT64_MAX - 1);
  made.who.clear();
  for (char byte = '!'; byte <= '~'; ++byte) made.who += byte;
  made.released = true;
  made.written_ms = 7;
  const auto text = text_of(made);
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; })) << text;
  EXPECT_EQ(value(read_of(text, std::nullopt, "k")).record, made);
  EXPECT_EQ(text_of(made), text);
  EXPECT_TRUE(text.starts_with(R"({"token":18446744073709551615,)")) << text << ": the strict fence compares that";
}

TEST(EtcdRecord, ARequestToStepDownStandsBesideIt) {
  const StepDown request{{9}, "ops\xff", "because \"so\""};
  EXPECT_EQ(value(read_of(std::nullopt, text_of(request), "k")).step_down, request);
  for (const std::string text : {"", "{", "[]", "null", R"({"token":-1,"by":"a","why":"b"})", R"({"token":1,"by":7})"})
    EXPECT_EQ(value(read_of(std::nullopt, text, "k")).step_down, std::nullopt) << text;
}

TEST(EtcdRecord, WithoutTokenOrBeatItIsNone) {
  for (const std::string text : {"", "x", "{", "[1]", "7", "{}", R"({"token":1})", R"({"token":1,"beat":-1})",
                                 R"({"token":"1","beat":2})", R"({"token":1.5,"beat":2})"}) {
    const auto read = read_of(text, std::nullopt, "tenure/record/jobs");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().fault, Fault::corrupt);
    EXPECT_TRUE(mentions(read.error().message, "tenure/record/jobs is not a record")) << read.error().message;
  }
}

TEST(EtcdRecord, AnotherFormatIsRefusedAndDamageCountsAsAVersion) {
  const auto read = read_of(R"({"token":5,"beat":6,"format":2})", std::nullopt, "k");
  ASSERT_FALSE(read);
  EXPECT_TRUE(mentions(read.error().message, "format 2")) << read.error().message;

  const auto whole = Json::parse(text_of(record(5, 6)));
  for (const auto& [name, member] : whole.items()) {
    if (name == "token" || name == "beat") continue;
    for (const auto& odd : {Json(), Json("%"), Json(-1), Json(std::string(max_who_bytes + 1, 'x')), Json::array()}) {
      if (name == "who" && odd == "%") continue;  // whoever reads it judges the text
      auto damaged = whole;
      damaged[name] = odd;
      const auto seen = value(read_of(damaged.dump(), std::nullopt, "k"));
      EXPECT_TRUE(seen.unreadable) << damaged;
      ASSERT_TRUE(seen.record);
      EXPECT_EQ(seen.record->token, Token{5});
      EXPECT_EQ(seen.record->beat, 6u);
    }
  }
  auto more = whole;
  more["more"] = 1;
  EXPECT_TRUE(value(read_of(more.dump(), std::nullopt, "k")).unreadable);
}

// ---- answers ----

/// An absent record is a ground for a claim.
TEST(EtcdGateway, NothingLessThanAWholeAnswerIsTakenForAnAbsentKey) {
  const auto answer = [](const std::string& rest) { return Json::parse(R"({"header":{"revision":"5"})" + rest + "}"); };
  const std::string none = R"({"response_range":{"header":{"revision":"5"}}})", put = R"({"response_put":{}})";
  const auto done = done_of(answer(R"(,"succeeded":true,"responses":[)" + none + "," + put + "]"), 2, 7);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->succeeded);
  EXPECT_EQ(done->values, (std::vector<std::optional<std::string>>{std::nullopt, std::nullopt}));

  for (const auto* const text : {"{}", "[]", "null", "7"}) EXPECT_FALSE(done_of(Json::parse(text), 2, 7)) << text;
  EXPECT_FALSE(done_of(Json::parse(R"({"header":{},"succeeded":true,"responses":[)" + none + "," + none + "]}"), 2, 7));
  const auto two = "[" + none + "," + none + "]";
  for (const auto& rest : {std::string(), std::string(R"(,"succeeded":true)"), R"(,"responses":)" + two,
                           R"(,"succeeded":1,"responses":)" + two, R"(,"succeeded":false,"responses":)" + two})
    EXPECT_FALSE(done_of(answer(rest), 2, 7)) << rest;
  const auto range = [](const std::string& kvs) { return R"({"response_range":{"kvs":)" + kvs + "}}"; };
  for (const auto& part :
       {std::string("{}"), std::string("7"), std::string("null"), std::string(R"({"response_range":7})"), range("[]"),
        range("{}"), range(R"([{"value":7}])"), range(R"([{"value":"!"}])"), range("[7]")})
    EXPECT_FALSE(done_of(answer(R"(,"succeeded":true,"responses":[)" + part + "," + put + "]"), 2, 7)) << part;
}

TEST(EtcdGateway, APageOfKeysIsWholeOrNone) {
  const auto page = [](const std::string& rest) {
    return page_of(Json::parse(R"({"header":{"revision":"5"})" + rest + "}"), "b", "d");
  };
  const auto kv = [](const std::string& key) { return R"({"key":")" + base64(key) + R"(","value":"eA=="})"; };
  const auto two = page(R"(,"more":true,"kvs":[)" + kv("b") + "," + kv("c") + "]");
  ASSERT_TRUE(two);
  EXPECT_TRUE(two->more);
  EXPECT_EQ(two->values, (std::vector<std::pair<std::string, std::string>>{{"b", "x"}, {"c", "x"}}));
  const auto none = page("");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->more);
  EXPECT_TRUE(none->values.empty());
  for (const auto& rest :
       {std::string(R"(,"more":true)"), std::string(R"(,"kvs":[])"), std::string(R"(,"kvs":{})"),
        std::string(R"(,"kvs":[7])"), std::string(R"(,"kvs":[{"key":"!"}])"), R"(,"kvs":[)" + kv("a") + "]",
        R"(,"kvs":[)" + kv("d") + "]", R"(,"kvs":[)" + kv("c") + "," + kv("c") + "]"})
    EXPECT_FALSE(page(rest)) << rest;
  EXPECT_FALSE(page_of(Json::parse("{}"), "b", "d")) << "nobody says that there are none";
}

TEST(EtcdGateway, EachErrorIsOfAKindAndNamesARemedy) {
  const auto error = [](long status, const std::string& message, int code) {
    const auto json = json_of({status, Json{{"error", message}, {"code", code}}.dump()});
    const auto newer = json_of({status, Json{{"message", message}, {"code", code}}.dump()});
    if (json || newer) return Error{};
    EXPECT_EQ(newer.error().fault, json.error().fault) << "by a gateway of another release: " << message;
    EXPECT_EQ(newer.error().message, json.error().message);
    return json.error();
  };
  expect_error(error(503, "etcdserver: no leader", 14), Fault::unreachable, {"majority"});
  expect_error(error(503, "etcdserver: request timed out", 14), Fault::unreachable, {"majority"});
  expect_error(error(503, "etcdserver: rpc not supported for learner", 14), Fault::unreachable, {"members that vote"});
  expect_error(error(429, "etcdserver: mvcc: database space exceeded", 8), Fault::misconfigured, {"alarm disarm"});
  expect_error(error(403, "etcdserver: permission denied", 7), Fault::forbidden, {"grant-permission"});
  expect_error(error(400, "etcdserver: user name is empty", 3), Fault::forbidden, {"set user and password"});
  expect_error(error(400, "etcdserver: authentication failed, invalid user ID or password", 3), Fault::forbidden,
               {"check user"});
  expect_error(error(500, "etcdserver: corrupt cluster", 15), Fault::corrupt, {"alarm list"});
  expect_error(error(401, "of another release", 16), Fault::forbidden, {"of another release"});
  expect_error(error(503, "of another release\n", 14), Fault::unreachable, {"of another release?"});
  for (const auto* const code : {"grpc_code", "code"}) {
    const auto of_a_watch = error_in({{"error", {{"message", "etcdserver: permission denied"}, {code, 7}}}});
    ASSERT_TRUE(of_a_watch);
    expect_error(*of_a_watch, Fault::forbidden, {"grant-permission"});
  }
  EXPECT_FALSE(error_in({{"result", {{"created", true}}}}));
  const auto answered = [](long status, const std::string& body) { return json_of({status, body}).error(); };
  expect_error(answered(400, "Client sent an HTTP request to an HTTPS server.\n"), Fault::misconfigured, {"etcds://"});
  expect_error(answered(404, "Not Found"), Fault::misconfigured, {"JSON gateway"});
  expect_error(answered(200, "<html>"), Fault::unreachable, {"not of etcd"});
  expect_error(answered(500, "{}"), Fault::unreachable, {"500"});
  const auto of_a_proxy = answered(403, "etcdserver: permission denied by this proxy");
  expect_error(of_a_proxy, Fault::unreachable, {"403"});
  EXPECT_FALSE(mentions(of_a_proxy.message, "etcdctl")) << of_a_proxy.message;
}

/// What is cut first may be left with a half of it.
TEST(EtcdGateway, ASecretIsTakenOutBeforeAMessageIsCut) {
  const Redactor redacted({canary});
  for (std::size_t before = 60; before < 260; ++before) {
    const auto text = std::string(before, 'x') + canary;
    for (const auto& answer : {Answer{200, text}, Answer{502, text}, Answer{503, Json{{"error", text}}.dump()}}) {
      const auto message = json_of(answer, redacted).error().message;
      EXPECT_FALSE(mentions(message, canary.substr(0, 3))) << message;
    }
  }
}

/// Whoever copies or prints JSON recurses: 130 000 lists in one another need some 20 MB of stack.
TEST(EtcdGateway, WhatLiesTooDeepIsLeftOut) {
  std::string lists(130'000, '['), objects;
  lists += std::string(130'000, ']');
  for (int i = 0; i < 40'000; ++i) objects += "{\"a\":";
  objects += "7" + std::string(40'000, '}');
  for (const auto& text : {lists, objects, "[1," + lists + ",2]", R"({"b":)" + objects + R"(,"c":3})"}) {
    const auto json = parsed(text);
    EXPECT_FALSE(json.is_discarded());
    EXPECT_LT(json.dump().size(), 300u);
  }
  EXPECT_EQ(parsed("[1," + lists + ",2]").back(), 2);
  EXPECT_TRUE(parsed("[1,").is_discarded());
  EXPECT_TRUE(parsed(std::string(130'000, '[')).is_discarded());
  EXPECT_EQ(parsed(R"({"a":[{"b":{"c":[[7]]}}]})").dump(), R"({"a":[{"b":{"c":[[7]]}}]})");
}

}  // namespace
}  // namespace tenure::etcd
