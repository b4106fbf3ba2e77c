// SPDX-License-Identifier: Apache-2.0
// Goal: words for people, untrusted text made harmless, names checked.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include <tenure/candidate.hpp>
#include <tenure/hooks.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/log.hpp>

#include "kit/random.hpp"
#include "refusal.hpp"

namespace tenure {
namespace {

template <class Enum>
void expect_words(int count) {
  std::set<std::string_view> words;
  for (int i = 0; i < count; ++i) words.insert(to_string(static_cast<Enum>(i)));
  EXPECT_EQ(words.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(words.count("?"), 0u);
  EXPECT_EQ(to_string(static_cast<Enum>(count)), "?") << "a new one has a word, and this test its number";
}

TEST(Text, EveryEnumeratorHasAWordOfItsOwn) {
  expect_words<Fault>(9);
  expect_words<Reason>(8);
  expect_words<Level>(4);
}

TEST(Text, UntrustedTextIsHarmlessAndShort) {
  EXPECT_EQ(printable("plain \xc3\xa4"), "plain \xc3\xa4");
  EXPECT_EQ(printable(std::string_view("a\n\r\t\0\x1b[2J\x7f", 10)), "a?????[2J?");
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 259u);
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c\xd8\x9c\xe2\x80\x93"),
            "a?b?c?\xe2\x80\x93")
      << "order of text";
}

std::string refusal(const std::string& election) {
  return test::refusal_of([&] { check_election(election); });
}

TEST(Text, ElectionsHaveOneToTwoHundredBytesWithoutNul) {
  EXPECT_EQ(refusal("x"), "accepted");
  EXPECT_EQ(refusal(std::string(200, '\n')), "accepted");
  EXPECT_NE(refusal("").find("election has 0 bytes"), std::string::npos);
  EXPECT_NE(refusal(std::string(201, 'x')).find("election has 201 bytes"), std::string::npos);
  EXPECT_NE(refusal(std::string("a\0b", 3)).find("NUL"), std::string::npos);
  EXPECT_LT(refusal(std::string(10'000, 'x')).size(), 200u);
  EXPECT_EQ(refusal(std::string(300, '\x1b')).find('\x1b'), std::string::npos);
}

TEST(Text, CandidatesAreNamedAndMeasured) {
  EXPECT_EQ(checked({"a", "b"}).name, "a");
  EXPECT_EQ(checked({"a", "b"}).address, "b");
  const auto name = checked({}).name;
  EXPECT_GE(std::count(name.begin(), name.end(), '_'), 2) << name << ": host, process, time";
  EXPECT_LE(name.size(), max_candidate_bytes);
  EXPECT_NO_THROW(checked({std::string(100, 'x'), std::string(100, 'x')}));
  EXPECT_THROW(checked({std::string(101, 'x'), ""}), std::invalid_argument);
  EXPECT_THROW(checked({"a", std::string(101, 'x')}), std::invalid_argument);
  EXPECT_THROW(checked({std::string("a\0b", 3), ""}), std::invalid_argument);
}

TEST(Text, IncarnationsAndBeatsDoNotRepeat) {
  std::set<std::string> incarnations;
  std::set<std::uint64_t> beats;
  for (int i = 0; i < 1000; ++i) {
    const auto incarnation = draw_incarnation();
    EXPECT_EQ(incarnation.size(), 32u);
    EXPECT_EQ(incarnation.find_first_not_of("0123456789abcdef"), incarnation.npos) << incarnation;
    incarnations.insert(incarnation);
    beats.insert(random_u64());
  }
  EXPECT_EQ(incarnations.size(), 1000u);
  EXPECT_EQ(beats.size(), 1000u);
}

}  // namespace
}  // namespace tenure
