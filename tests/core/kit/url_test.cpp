// SPDX-License-Identifier: Apache-2.0
// Goal: a URL is taken apart exactly, what is wrong is told with its place, and no secret is ever told.
// Method: tables of right and wrong ones; canaries stand where a password may, encoded or not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tenure/kit/url.hpp>

#include "refusal.hpp"

namespace tenure {
namespace {

using test::refusal_of;

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_url(text); });
}

TEST(Url, HasAllItsParts) {
  const auto url = parse_url("Redis+TLS://me:p%40ss%2F%3f%23:w@h1:6379,h2,[::1]:7/0/x%20y?a=1&b=%26%3D&c=");
  EXPECT_EQ(url.scheme, "redis+tls");
  EXPECT_EQ(url.user, "me");
  EXPECT_EQ(url.password, "p@ss/?#:w");
  EXPECT_EQ(url.hosts, (std::vector<Url::Host>{{"h1", 6379}, {"h2", {}}, {"::1", 7}}));
  EXPECT_EQ(url.path, "/0/x y");
  EXPECT_EQ(url.query, (std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "&="}, {"c", ""}}));
}

TEST(Url, MayLackAllButTheScheme) {
  EXPECT_EQ(parse_url("memory:").path, "");
  EXPECT_EQ(parse_url("memory:name").path, "name");
  EXPECT_EQ(parse_url("memory:").hosts.size(), 0u);
  EXPECT_EQ(parse_url("file:///var/lib/x").path, "/var/lib/x");
  EXPECT_EQ(parse_url("file:/var").path, "/var");
  EXPECT_EQ(parse_url("file:///var").hosts.size(), 0u);
  EXPECT_EQ(parse_url("redis://h").path, "");
  EXPECT_EQ(parse_url("redis://h?a=1").query.size(), 1u);
  EXPECT_EQ(parse_url("redis://:secret@/0").password, "secret");
  EXPECT_EQ(parse_url("redis://u@h").user, "u");
  EXPECT_EQ(parse_url("redis://[2001:db8::1.2.3.4]/").hosts[0].name, "2001:db8::1.2.3.4");
}

struct Wrong {
  std::string text, message;
};

TEST(Url, WhatIsWrongIsReportedWithItsPlace) {
  const Wrong wrong[] = {
      {"", "URL: it is empty"},
      {"file", "URL: the scheme is missing"},
      {":x", "URL: at byte 1 an empty scheme"},
      {"3file:x", "URL: at byte 1 an invalid character in the scheme"},
      {"fi_le:x", "URL: at byte 3 an invalid character in the scheme"},
      {"file:///a b", "URL: at byte 10 a blank"},
      {"file:///a\n", "URL: at byte 10 a blank, a control character"},
      {"file:///\xc3\xa4", "URL: at byte 9 a blank, a control character or a byte beyond ASCII"},
      {"file:///a#b", "URL: at byte 10 a '#'"},
      {"file:///a%", "URL: at byte 10 a '%'"},
      {"file:///a%4", "URL: at byte 10 a '%'"},
      {"file:///a%4g", "URL: at byte 10 a '%'"},
      {"file:///a%00b", "URL: at byte 10 a NUL"},
      {"file:///a|b", "URL: at byte 10 a character that must be written as %"},
      {"file:///a@b", "URL: at byte 10 an '@' that is not in its place"},
      {"redis://h1,,h2", "URL: at byte 12 a host is missing"},
      {"redis://h1,", "URL: at byte 11 a ',' that no further host follows"},
      {"redis://:6379", "URL: at byte 9 a host is missing"},
      {"redis://h:", "URL: at byte 10 no port"},
      {"redis://h:0", "URL: at byte 10 no port"},
      {"redis://h:65536", "URL: at byte 10 no port"},
      {"redis://h:99999999999999999999", "URL: at byte 10 no port"},
      {"redis://h:63x", "URL: at byte 10 no port"},
      {"redis://h:-1", "URL: at byte 10 no port"},
      {"redis://h%41", "URL: at byte 10 a character that no host has"},
      {"redis://[::1", "URL: at byte 9 a '[' without a ']'"},
      {"redis://[1.2.3.4]", "URL: at byte 9 brackets round what is no IPv6 address"},
      {"redis://[::1]x", "URL: at byte 14 no port"},
      {"redis://:pa/ss@h", "URL: at byte 15 an '@' that is not in its place: write %40, and in a password %2F for '/'"},
      {"redis://u:pa?ss@h",
       "URL: at byte 16 an '@' that is not in its place: write %40, and in a password %2F for '/'"},
      {"redis://a@b@h", "URL: at byte 10 one of several '@'"},
      {"redis://h?", "URL: at byte 11 key=value is expected"},
      {"redis://h?a", "URL: at byte 11 key=value is expected"},
      {"redis://h?=1", "URL: at byte 11 key=value is expected"},
      {"redis://h?a=1&", "URL: at byte 15 key=value is expected"},
      {"redis://h?a=1&&b=2", "URL: at byte 15 key=value is expected"},
      {"redis://h?a=1&%61=2", "URL: the key \"a\" stands twice"},
      {"redis://" + std::string(max_url_bytes, 'h'), "URL: it has 4104 bytes; at most 4096"},
  };
  for (const auto& [text, message] : wrong)
    EXPECT_EQ(refusal(text).substr(0, message.size()), message) << text << "\n" << refusal(text);
  EXPECT_EQ(refusal("redis://" + std::string(max_url_bytes - 8, 'h')), "accepted");
}

/// With a password that has every character that one forgets to encode.
TEST(Url, NoMessageRepeatsASecret) {
  const std::string around[][2] = {{"redis://user:", "@host/0"},
                                   {"redis://:", "@host:1"},
                                   {"redis://", "@host"},
                                   {"redis://u:", "@h1,h2?a=b"},
                                   {"redis://h/0?a=", "&a=b"},
                                   {"redis:u:", "@host"},
                                   {"redis:/u:", "@host"},
                                   {"u:", "@host"},
                                   {"", "@host"},
                                   {"redis://u:", "@host:99999/"},
                                   {"redis://u:", "@[x]/?a"},
                                   {"://u:", "@host"},
                                   {"redis://u:", "@h/%zz"},
                                   {"red is://u:", "@host"},
                                   {"redis://h?k=", "#"},
                                   {"redis://u:1?k=", "@host"},
                                   {"redis://u:1/x", "@host"}};
  for (const auto& [before, after] : around)
    for (const std::string middle : {"", "/", "?", "#", "@", "[", "%", "%00", " ", "\n", ":", ",", "=", "&", "\xff"}) {
      const auto text = before + "canary" + middle + "canary" + after;
      EXPECT_EQ(refusal(text).find("canary"), std::string::npos) << refusal(text);
    }
}

TEST(Url, ItsSchemeIsInLowerCaseOrThereIsNone) {
  EXPECT_EQ(scheme_of("Redis+UNIX://u:p@h"), "redis+unix");
  EXPECT_EQ(scheme_of("memory:"), "memory");
  for (const auto* const text : {"", ":", "x", "host=h password=p", "1x:", "a_b:", "\xc3\xa4:", " x:"})
    EXPECT_EQ(scheme_of(text), std::nullopt) << text;
}

TEST(Url, SettingsAreTakenAndWhatIsLeftIsRefused) {
  auto url = parse_url("kafka://h/topic?group=g&sesion=secret");
  EXPECT_EQ(url.take("group"), "g");
  EXPECT_EQ(url.take("session"), std::nullopt);
  EXPECT_EQ(refusal_of([&] { url.expect_no_more(); }),
            "URL: a store of the scheme \"kafka\" has no setting \"sesion\", did you mean \"session\"? It has: group, "
            "session");
  EXPECT_TRUE(url.take("sesion"));
  EXPECT_NO_THROW(url.expect_no_more());
}

TEST(Url, ASettingOfAnotherKindIsRefusedWithoutItsValue) {
  const auto taken = [](const std::string& value) -> std::string {
    auto url = parse_url("kafka://h?n=" + value + "&w=" + value);
    int number = -1;
    const auto no_number = refusal_of([&] { url.take("n", number, 0, 100); });
    if (no_number == "accepted") return std::to_string(number);
    EXPECT_EQ(no_number, "URL: n must be a number from 0 to 100");
    bool second = false;
    const auto neither = refusal_of([&] { second = url.take_second("w", "no", "yes"); });
    if (neither == "accepted") return second ? "yes" : "no";
    EXPECT_EQ(neither, "URL: w must be no or yes");
    return "refused";
  };
  for (const std::string value : {"0", "100", "no", "yes"}) EXPECT_EQ(taken(value), value);
  for (const std::string value : {"", "101", "-1", "1x", "0x1", "YES", "99999999999999999999"})
    EXPECT_EQ(taken(value), "refused") << value;
}

TEST(Url, CredentialsReplaceThoseOfTheUrl) {
  Opening opening{.url = "redis://u:p@h"};
  EXPECT_FALSE(credentials_of(opening, parse_url(opening)));
  Credentials told{.password = "new"};
  opening.credentials = [&told] { return told; };
  const auto ask = credentials_of(opening, parse_url(opening));
  EXPECT_EQ(ask().user + ":" + ask().password, "u:new");
  told = {.user = "me"};
  EXPECT_EQ(ask().user + ":" + ask().password, "me:p");
}

TEST(Url, WhatStandsBesideItReplacesOrIsAdded) {
  Opening opening{.url = "redis://u:p@h?a=1", .election = "e"};
  opening.user = "me";
  opening.password = "pass word";
  opening.properties = {{"b", "2"}};
  const auto url = parse_url(opening);
  EXPECT_EQ(url.user, "me");
  EXPECT_EQ(url.password, "pass word");
  EXPECT_EQ(url.query, (std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(parse_url(Opening{.url = "redis://u:p@h", .election = "e"}).password, "p");
  opening.properties["a"] = "canary";
  EXPECT_EQ(refusal_of([&] { parse_url(opening); }),
            "URL: the key \"a\" stands in its query and in the properties; give it once");
}

}  // namespace
}  // namespace tenure
