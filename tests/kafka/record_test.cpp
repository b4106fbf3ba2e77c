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

const Record usual{false, 6250ms, 17, {"host_1_2", "0123456789abcdef0123456789abcdef", "10.0.0.1:80"}};

/// A text with these first fields, by "i".
std::string by_i(const std::string& fields) { return fields + ";name=n;address=a;incarnation=i"; }

TEST(KafkaRecord, ReadsAsWritten) {
  EXPECT_EQ(
      encode(usual),
      "v1;A;6250;17;0;E;0;name=host_1_2;address=10.0.0.1:80;incarnation=0123456789abcdef0123456789abcdef;version=");
  std::string every_byte;
  for (int c = 1; c < 101; ++c) every_byte += static_cast<char>(c + (c > 50 ? 130 : 0));
  for (const auto& name : {std::string(), std::string("a;b%c d"), std::string("\xc3\xa4\n\x7f", 4), every_byte}) {
    auto r = usual;
    r.who.name = name;
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

TEST(KafkaRecord, OfRolesHasNumberAndMode) {
  auto r = usual;
  r.units = 12;
  const auto tells = [&](const std::string& fields) {
    EXPECT_TRUE(encode(r).starts_with("v1;A;6250;17;" + fields + ";name=")) << encode(r);
    EXPECT_EQ(decode(encode(r)), r);
  };
  tells("12;E;0");
  r.grown_from = 4;
  tells("12;E;4");
  r.grown_from = 0;
  r.exclusive = Exclusive::no;
  tells("12;C;0");
  r.leads = true;
  tells("12;L;0");
}

TEST(KafkaRecord, TheLongestCandidateOfAllIsRead) {
  const std::string longest(max_candidate_bytes, '\xff');
  const Incumbent who{
      .name = longest, .incarnation = std::string(64, 'f'), .address = longest, .version = std::string(32, '1')};
  const Record r{.lease = max_term, .seq = ~std::uint64_t{0}, .who = who, .units = 256, .grown_from = 128};
  EXPECT_EQ(decode(encode(r)), r) << encode(r).size();
}

TEST(KafkaRecord, LaterVersionsKeepStateAndLease) {
  const auto later = decode("v2;R;9000;whatever;comes;then;;;");
  ASSERT_TRUE(later);
  EXPECT_TRUE(later->released);
  EXPECT_EQ(later->lease, 9s);
  EXPECT_EQ(later->who, Incumbent{}) << "nobody takes it for its own";
}

TEST(KafkaRecord, AnyOtherMetadataIsForeign) {
  EXPECT_TRUE(decode(by_i("v1;A;1;1;0;E;0")));
  EXPECT_TRUE(decode(by_i("v1;R;3600000;1;12;C;0")));
  for (const auto* fields : {"v1;a;1;1;0;E;0",
                             "v1;;1;1;0;E;0",
                             "v1;AR;1;1;0;E;0",  // the state
                             "v1;A;0;1;0;E;0",
                             "v1;A;-1;1;0;E;0",
                             "v1;A;+1;1;0;E;0",
                             "v1;A; 1;1;0;E;0",
                             "v1;A;1.5;1;0;E;0",
                             "v1;A;;1;0;E;0",
                             "v1;A;3600001;1;0;E;0",
                             "v1;A;4294967297;1;0;E;0",
                             "v1;A;99999999999999999999999;1;0;E;0",  // the lease
                             "v0;A;1;1;0;E;0",
                             "v01;A;1;1;0;E;0",
                             "1;A;1;1;0;E;0",
                             "v;A;1;1;0;E;0",
                             "v-1;A;1;1;0;E;0",
                             "v99999999999;A;1;1;0;E;0",  // the version
                             "v1;A;1;x;0;E;0",
                             "v1;A;1;99999999999999999999;0;E;0",
                             "v1;A;1;1;0;E",
                             "v1;A;1;1;0;E;0;",  // the others
                             "v1;A;1;1;-1;E;0",
                             "v1;A;1;1;x;E;0",
                             "v1;A;1;1;;E;0",
                             "v1;A;1;1;12;X;0",
                             "v1;A;1;1;12;;0",
                             "v1;A;1;1;12;LC;0",
                             "v1;A;1;1;12;E;-1",
                             "v1;A;1;1;12;E;x",
                             "v1;A;1;1;0;L;0",
                             "v1;A;1;1;0;C;0",
                             "v1;A;1;1;0;E;4"})
    EXPECT_FALSE(decode(by_i(fields))) << fields;
  for (const auto& who : {std::string(), std::string("name=n;address=a"), std::string("name=n;address=a;incarnation="),
                          std::string("n;a;i"), std::string("name=%4;address=a;incarnation=i"),
                          "name=n;address=a;incarnation=" + std::string(65, 'i')})
    EXPECT_FALSE(decode("v1;A;1;1;0;E;0;" + who)) << who;
  for (const auto& text :
       {std::string(), std::string("v1"), std::string("v1;A"), std::string(";;"), std::string("metadata of a consumer"),
        std::string(max_record_bytes + 1, ';'), "v2;A;1;" + std::string(max_record_bytes, 'x')})
    EXPECT_FALSE(decode(text)) << text.substr(0, 60);
}

TEST(KafkaRecord, WithAByteOfZeroItIsForeignInEveryVersion) {
  for (const auto& text : {by_i("v1;A;6250;1;0;E;0"), std::string("v9;A;6250;something")}) {
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
    EXPECT_LE(r->who.name.size(), max_candidate_bytes);
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
