// SPDX-License-Identifier: Apache-2.0
// Goal: numbers and bytes are read and written strictly.
#include <tenure/kit/text.hpp>

#include <gtest/gtest.h>

namespace tenure {
namespace {

TEST(Text, ANumberIsTheWholeTextAndFits) {
  EXPECT_EQ(number<int>("0"), 0);
  EXPECT_EQ(number<int>("007"), 7);
  EXPECT_EQ(number<int>("-5"), -5);
  EXPECT_EQ(number<std::uint64_t>("18446744073709551615"), 18446744073709551615u);
  EXPECT_EQ(number<unsigned char>("fF", 16), 255);
  for (const auto* const text : {"", " 1", "1 ", "+1", "1x", "0x1", "x", "-", "99999999999999999999"})
    EXPECT_EQ(number<std::int64_t>(text), std::nullopt) << text;
  EXPECT_EQ(number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(number<unsigned char>("256"), std::nullopt);
  EXPECT_EQ(number<int>(std::string_view("1\0", 2)), std::nullopt);
}

TEST(Text, BytesAreTwoDigitsEach) {
  EXPECT_EQ(hex(""), "");
  EXPECT_EQ(hex(std::string_view("\x00\x0f\xf0\xff", 4)), "000ff0ff");
  EXPECT_EQ(hex(std::uint64_t{0}), "0000000000000000");
  EXPECT_EQ(hex(std::uint64_t{0x123456789abcdef0}), "123456789abcdef0");
}

TEST(Lower, LeavesEverythingButLettersOfAscii) { EXPECT_EQ(lower("aZ-[@\xc3\x84"), "az-[@\xc3\x84"); }

TEST(Text, AByteIsAPercentSignAndTwoDigits) {
  EXPECT_EQ(percent(' '), "%20");
  EXPECT_EQ(percent('\xfa'), "%FA");
}

TEST(Text, AnyBytesGoThroughPercentSignsAndComeBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(percent_encoded("db-7.a:80/%\n"), "db-7.a:80/%25%0A");
  EXPECT_EQ(percent_decoded(percent_encoded(all), all.size()), all);
  EXPECT_EQ(percent_decoded(percent_encoded(all), all.size() - 1), std::nullopt);
  for (const auto* const text : {"%", "%4", "%4x", "%-1", "a b", "\xe4"})
    EXPECT_EQ(percent_decoded(text, 100), std::nullopt) << text;
}

TEST(Text, WhatIsNotUtf8IsReplaced) {
  for (const std::string good : {"", "jobs\n", "\x7f", "\xc2\x80", "\xc3\xa9", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                 "\xee\x80\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(utf8(good), good) << percent_encoded(good);
  EXPECT_EQ(utf8(std::string_view("a\0b", 3)), std::string("a\0b", 3));
  const std::string bad = "\xef\xbf\xbd";
  for (const std::string end : {"", "x", "\xc3\xa9"}) {
    for (const auto* const one :
         {"\x80", "\xbf", "\xc0", "\xc1", "\xc3", "\xe0", "\xe0\xa0", "\xf0\x90\x80", "\xf5", "\xff"})
      EXPECT_EQ(utf8(one + end), bad + end) << percent_encoded(one + end);
    for (const auto* const two : {"\xc0\x80", "\xe0\x9f", "\xe2\x82\xe2", "\xed\xa0", "\xf0\x8f", "\xf4\x90"})
      EXPECT_EQ(utf8(two + end), bad + bad + end) << percent_encoded(two + end);
  }
}

TEST(Text, AHashIsThatOfFnv1a) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace tenure
