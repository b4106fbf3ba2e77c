// SPDX-License-Identifier: Apache-2.0
// Goal: the doctor finds a server that would let everybody lead, and what an operator must know of a bucket. Method: a
// bucket in memory that lies.
#include <gtest/gtest.h>

#include <tenure/object.hpp>

#include "checks.hpp"
#include "environment.hpp"
#include "fake_s3.hpp"
#include "store_calls.hpp"

namespace tenure::object::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::mentions;
using tenure::test::value;
using tenure::test::within;

std::string examined(const FakeBucket& bucket) {
  Opening opening;
  opening.url = bucket.url(canary);
  opening.election = "jobs";
  const auto text = tenure::test::text_of(value(check_url(opening, within(20s))));
  EXPECT_FALSE(mentions(text, canary)) << text;
  return text;
}

TEST(ObjectCheckup, AServerThatKeepsConditionsIsFine) {
  FakeBucket bucket;
  for (int i = 0; i < 2; ++i) {  // the second time its own object is there
    const auto text = examined(bucket);
    EXPECT_TOLD(text, "fine: the server honours conditional writes");
    EXPECT_TOLD(text, "fine: no lifecycle rule deletes objects");
    EXPECT_FALSE(mentions(text, "WRONG")) << text;
  }
  for (const auto& request : bucket.s3.requests())
    EXPECT_FALSE(request.starts_with("PUT /bucket/jobs/jobs")) << "it writes no record";
}

TEST(ObjectCheckup, AServerThatIgnoresAConditionIsWrong) {
  FakeBucket match;
  match.s3.ignores_match = true;
  EXPECT_TOLD(examined(match),
              "WRONG: the server ignores the version that a write demands (If-Match): every candidate would lead");
  FakeBucket none;
  none.s3.ignores_none_match = true;
  EXPECT_TOLD(examined(none), "WRONG: the server ignores that a write demands that there is no object (If-None-Match)");
  FakeBucket same;
  same.s3.same_etag = true;
  EXPECT_TOLD(examined(same), "WRONG: the server ignores what is written");
}

TEST(ObjectCheckup, WhoMayNotWriteHearsIt) {
  FakeBucket bucket;
  bucket.s3.first = [](const std::string& request) -> std::optional<Answer> {
    if (request.starts_with("PUT ")) return Answer{failure("403 Forbidden", "AccessDenied", canary)};
    return std::nullopt;
  };
  EXPECT_TOLD(examined(bucket), "WRONG: we may read, but a write fails: ");
  bucket.s3.first = [](const std::string&) { return Answer{failure("403 Forbidden", "AccessDenied")}; };
  EXPECT_TOLD(examined(bucket), "WRONG: we may not read the election's object");
}

TEST(ObjectCheckup, ABucketThatLetsNothingBeReplacedIsWrong) {
  FakeBucket bucket;
  bucket.s3.first = [](const std::string& request) -> std::optional<Answer> {
    if (header(request, "If-Match").empty()) return std::nullopt;
    return Answer{failure("409 Conflict", "BlobImmutableDueToPolicy")};
  };
  EXPECT_TOLD(examined(bucket), "WRONG: the server refuses to replace an object, although its version stands there: ");
  EXPECT_TOLD(examined(bucket), "BlobImmutableDueToPolicy");
}

TEST(ObjectCheckup, VersionsAndRulesThatDeleteAreDoubtful) {
  FakeBucket bucket;
  bucket.s3.first = [](const std::string& request) -> std::optional<Answer> {
    if (mentions(request, "?versioning=")) return Answer{http("200 OK", "<Status>Enabled</Status>")};
    if (mentions(request, "?lifecycle="))
      return Answer{http("200 OK", "<Rule><Expiration><Days>1</Days></Expiration>")};
    return std::nullopt;
  };
  const auto text = examined(bucket);
  EXPECT_TOLD(text, "note: the bucket keeps every version");
  EXPECT_TOLD(text, "note: a lifecycle rule of the bucket deletes objects");
  bucket.s3.first = [](const std::string& request) -> std::optional<Answer> {
    if (mentions(request, "?")) return Answer{failure("403 Forbidden", "AccessDenied")};
    return std::nullopt;
  };
  EXPECT_TOLD(examined(bucket), "note: the bucket's lifecycle rules are not seen");
}

}  // namespace
}  // namespace tenure::object::test
