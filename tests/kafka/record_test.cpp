// SPDX-License-Identifier: Apache-2.0
// Goal: what is committed is read back as it was, and nothing that somebody else wrote is taken for a record
// of ours. Method: round trips, and hostile texts by hand and by mutation.
#include "record.hpp"

#include <gtest/gtest.h>

#include <random>

#include <tenure/candidate.hpp>
#include <tenure/timing.hpp>

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;

const Record usual{false, 6250ms, "0123456789abcdef0123456789abcdef", 17, "host_1_2", "10.0.0.1:80"};

TEST(KafkaRecord, ReadsAsWritten) {
  EXPECT_EQ(encode(usual), "v1;A;6250;0123456789abcdef0123456789abcdef;17;host_1_2;10.0.0.1:80");
  std::string every_byte;
  for (int c = 1; c < 101; ++c) every_byte += static_cast<char>(c + (c > 50 ? 130 : 0));
  for (const auto& name : {std::string(), std::string("a;b%c d"), std::string("\xc3\xa4\n\x7f", 4), every_byte}) {
    auto r = usual;
    r.name = name;
    r.released = !r.released;
    EXPECT_EQ(decode(encode(r)), r);
    for (const char c : encode(r)) EXPECT_TRUE(c > 0x20 && c < 0x7f) << "plain ASCII";
  }
}

TEST(KafkaRecord, ALeaseIsRoundedUp) {
  auto r = usual;
  r.lease = 6250ms + 1ns;
  EXPECT_EQ(decode(encode(r))->lease, 6251ms);
}

TEST(KafkaRecord, OfARoleThatSeveralMayLeadReadsAsWritten) {
  auto r = usual;
  r.units = 12;
  EXPECT_EQ(encode(r), "v2;A;6250;0123456789abcdef0123456789abcdef;17;host_1_2;10.0.0.1:80;12");
  EXPECT_EQ(decode(encode(r)), r);
  r.exclusive = Exclusive::no;
  EXPECT_EQ(encode(r), "v3;A;6250;0123456789abcdef0123456789abcdef;17;host_1_2;10.0.0.1:80;12;C");
  EXPECT_EQ(decode(encode(r)), r);
  r.leads = true;
  EXPECT_EQ(encode(r), "v3;A;6250;0123456789abcdef0123456789abcdef;17;host_1_2;10.0.0.1:80;12;L");
  EXPECT_EQ(decode(encode(r)), r);
  EXPECT_FALSE(decode("v3;A;6250;i;17;n;a;12;X"));
}

TEST(KafkaRecord, NameAndAddressThatMayMakeItUnreadableAreKnown) {
  Record r{.incarnation = {}, .name = std::string(100, '\xff'), .address = std::string(46, '\xff'), .units = 256};
  r.grown_from = 128;
  EXPECT_TRUE(too_long(r));
  r.address.pop_back();
  EXPECT_FALSE(too_long(r));
  r.lease = max_term;
  r.incarnation = std::string(32, 'f');
  r.seq = ~std::uint64_t{0};
  EXPECT_EQ(decode(encode(r)), r) << "with the longest of all that it has besides";
}

TEST(KafkaRecord, LaterVersionsKeepStateAndLease) {
  const auto later = decode("v2;R;9000;whatever;comes;then;;;");
  ASSERT_TRUE(later);
  EXPECT_TRUE(later->released);
  EXPECT_EQ(later->lease, 9s);
  EXPECT_EQ(later->incarnation, "") << "nobody takes it for its own";
}

TEST(KafkaRecord, AnyOtherMetadataIsForeign) {
  const auto with = [](const char* state, const char* lease) {
    return std::string("v1;") + state + ";" + lease + ";i;1;n;a";
  };
  EXPECT_TRUE(decode(with("A", "1")));
  EXPECT_TRUE(decode(with("R", "3600000")));
  for (const auto& text : {std::string(),
                           std::string("v1"),
                           std::string("v1;A"),
                           std::string(";;"),
                           std::string("metadata of a consumer"),
                           with("a", "1"),
                           with("", "1"),
                           with("AR", "1"),
                           with("A", "0"),
                           with("A", "-1"),
                           with("A", "+1"),
                           with("A", " 1"),
                           with("A", "1.5"),
                           with("A", ""),
                           with("A", "3600001"),
                           with("A", "4294967297"),
                           with("A", "99999999999999999999999"),
                           std::string("v0;A;1;i;1;n;a"),
                           std::string("v01;A;1;i;1;n;a"),
                           std::string("1;A;1;i;1;n;a"),
                           std::string("v;A;1;i;1;n;a"),
                           std::string("v-1;A;1;i;1;n;a"),
                           std::string("v99999999999;A;1;i;1;n;a"),
                           std::string("v1;A;1;i;1;n"),
                           std::string("v1;A;1;i;1;n;a;"),
                           std::string("v1;A;1;i;x;n;a"),
                           std::string("v1;A;1;i;99999999999999999999;n;a"),
                           std::string("v1;A;1;i;1;%;a"),
                           std::string("v1;A;1;i;1;%4;a"),
                           std::string("v1;A;1;i;1;%zz;a"),
                           std::string("v1;A;1;i;1;n\n;a"),
                           std::string("v1;A;1;i;1;n\0;a", 16),
                           std::string("v1;A;1;i;1;\xff;a"),
                           "v1;A;1;" + std::string(65, 'i') + ";1;n;a",
                           "v1;A;1;i;1;" + std::string(max_candidate_bytes + 1, 'n') + ";a",
                           std::string(max_record_bytes + 1, ';'),
                           "v2;A;1;" + std::string(max_record_bytes, 'x')})
    EXPECT_FALSE(decode(text)) << text.substr(0, 60);
}

TEST(KafkaRecord, UnitZeroOfAGroupThatHasGrownTellsTheNumberBefore) {
  auto record = usual;
  record.units = 8;
  record.grown_from = 4;
  EXPECT_TRUE(encode(record).starts_with("v4;"));
  EXPECT_TRUE(encode(record).ends_with(";8;4"));
  EXPECT_EQ(decode(encode(record)), record);
  for (const auto* text : {"v2;A;1;i;1;n;a;0", "v2;A;1;i;1;n;a;-1", "v3;A;1;i;1;n;a;0;L", "v4;A;1;i;1;n;a;0;4",
                           "v4;A;1;i;1;n;a;8;0", "v4;A;1;i;1;n;a;8;", "v4;A;1;i;1;n;a;8;-1", "v4;A;1;i;1;n;a;8;x"})
    EXPECT_FALSE(decode(text)) << text;
  EXPECT_EQ(decode("v4;A;1;i;1;n;a;8").value().units, 0) << "another version: it is waited for";
}

TEST(KafkaRecord, WithAByteOfZeroItIsForeignInEveryVersion) {
  for (const auto* text : {"v1;A;6250;abc;1;n;a", "v2;A;6250;abc;1;n;a;4", "v9;A;6250;something"}) {
    EXPECT_TRUE(decode(text)) << text;
    EXPECT_FALSE(decode(text + std::string(1, '\0'))) << text;
  }
}

TEST(KafkaRecord, MutatedRecordsAreReadOrRefusedAndNeverMore) {
  std::mt19937 random(7);
  const auto whole = encode(usual);
  for (int i = 0; i < 200'000; ++i) {
    auto text = whole.substr(0, random() % (whole.size() + 1));
    for (auto n = random() % 4; n-- > 0 && !text.empty();) text[random() % text.size()] = static_cast<char>(random());
    const auto r = decode(text);
    if (!r) continue;
    EXPECT_GT(r->lease, 0s);
    EXPECT_LE(r->lease, 1h);
    EXPECT_LE(r->name.size(), max_candidate_bytes);
    if (text.starts_with("v1;")) {
      EXPECT_EQ(decode(encode(*r)), r);
    }
  }
}

TEST(KafkaStepDown, ReadsAsWritten) {
  const StepDown request{{7}, "ops; %", "upgrade to 2.0\n"};
  const auto decoded = decode_step_down({7}, encode(request));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->token, request.token);
  EXPECT_EQ(decoded->by, request.by);
  EXPECT_EQ(decoded->why, request.why);
  for (const auto& text : {std::string(), std::string("v1"), std::string("v1;a"), std::string("v2;a;b"),
                           std::string("v1;a;b;c"), std::string("v1;%;b"), "v1;a;" + std::string(201, 'x')})
    EXPECT_FALSE(decode_step_down({7}, text)) << text;
}

}  // namespace
}  // namespace tenure::kafka
