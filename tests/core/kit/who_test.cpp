// SPDX-License-Identifier: Apache-2.0
// Goal: what a candidate tells of itself comes back as it was, whoever wrote it, and nothing else passes for it.
#include <gtest/gtest.h>

#include <chrono>

#include <tenure/kit/names.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/version.hpp>

namespace tenure {
namespace {

Incumbent texts_of(std::string_view who) {
  auto out = read_who(who);
  EXPECT_TRUE(out) << who;
  return out.value_or(Incumbent{});
}

TEST(Who, AnOperatorCanReadIt) {
  EXPECT_EQ(who_text({"node 1", "[::1]:80"}, "0f12"),
            "name=node%201;address=[::1]:80;incarnation=0f12;version=" TENURE_VERSION);
}

TEST(Who, EveryByteOfANameAndAnAddressComesBack) {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (std::size_t at = 0; at < bytes.size(); at += max_candidate_bytes) {
    const auto some = bytes.substr(at, max_candidate_bytes);
    const auto in = texts_of(who_text({some, ";" + some.substr(1)}, "i"));
    EXPECT_EQ(in.name, some);
    EXPECT_EQ(in.address, ";" + some.substr(1));
    EXPECT_EQ(in.incarnation, "i");
    EXPECT_EQ(in.version, version());
  }
}

TEST(Who, TheLongestOneLeavesRoomForLaterVersions) {
  const std::string longest(max_candidate_bytes, ' ');
  const auto who = who_text({longest, longest}, draw_incarnation());
  EXPECT_LE(who.size(), 700u);
  EXPECT_EQ(texts_of(who).name, longest);
}

TEST(Who, WhatALaterVersionAddedIsSkipped) {
  const auto who = who_text({"a", "b"}, "c") + ";place=rack%207;place;=;;100%;x=name=y";
  EXPECT_EQ(texts_of(who), texts_of(who_text({"a", "b"}, "c")));
  const auto filled = who + ";" + std::string(max_who_bytes - who.size() - 1, 'x');
  EXPECT_TRUE(read_who(filled));
  EXPECT_FALSE(read_who(filled + "x")) << "one byte too long";
}

TEST(Who, WhatAnEarlierVersionDidNotWriteIsEmpty) {
  EXPECT_EQ(texts_of(""), Incumbent{});
  EXPECT_EQ(texts_of("name=a"), (Incumbent{.name = "a"}));
  EXPECT_EQ(texts_of("name=a;address="), (Incumbent{.name = "a"}));
}

TEST(Who, NothingElsePasses) {
  using namespace std::string_literals;
  const auto good = who_text({"a", "b"}, "c");
  for (const auto& who : {
           "a"s,
           "name"s,
           ";"s,
           "=a"s,
           "Name=a"s,
           "address=b"s,
           " name=a"s,  // no first field
           "name=a;incarnation=c"s,
           "name=a;name=a"s,
           "name=a;;address=b"s,  // no second one
           "name=a b"s,
           "name=a\n"s,
           "name=\xc3\xa4"s,
           "name=a\x7f"s,
           "name=a\0"s,  // no plain bytes
           "name=%"s,
           "name=%4"s,
           "name=%4g"s,
           "name=%00"s,
           "name=a;address=b%"s,  // no bytes of a name
           good + ";place=a b",
           good + ";place=\n",
           good + "\0"s,
           good + ";place=\xff"s,  // no visible tail
       })
    EXPECT_FALSE(read_who(who)) << who;
}

TEST(Who, NoFieldIsTooLong) {
  const std::string name(max_candidate_bytes, 'n'), incarnation(64, 'i');
  EXPECT_TRUE(read_who(who_text({name, name}, incarnation)));
  EXPECT_FALSE(read_who(who_text({name + "n", name}, incarnation)));
  EXPECT_FALSE(read_who(who_text({name, name + "n"}, incarnation)));
  EXPECT_FALSE(read_who(who_text({name, name}, incarnation + "i")));
}

TEST(Who, AnIncumbentWhoseTextsCannotBeReadHasNone) {
  using std::chrono::seconds;
  EXPECT_EQ(incumbent_of("name=a", {7}, seconds(3)), (Incumbent{.name = "a", .token = {7}, .remaining = seconds(3)}));
  EXPECT_EQ(incumbent_of("what is this", {7}, seconds(3)), (Incumbent{.token = {7}, .remaining = seconds(3)}));
}

}  // namespace
}  // namespace tenure
