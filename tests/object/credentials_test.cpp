// SPDX-License-Identifier: Apache-2.0
// Goal: keys are found where Amazon's own tools find them, found anew when they expire or are refused, and never told.
// Method: the environment, files, and services that answer as their public description says; each ends in a request to
// a bucket, which shows what it was signed by.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include <tenure/object.hpp>

#include "environment.hpp"
#include "fake_s3.hpp"
#include "scratch.hpp"
#include "store_calls.hpp"
#include "test_key.hpp"

namespace tenure::object::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::error_of;
using tenure::test::expect_error;
using tenure::test::mentions;
using tenure::test::Scratch;
using tenure::test::within;
using Variables = std::map<std::string, std::string>;

std::string keyless(const FakeBucket& bucket, const std::string& more = {}) {
  return "s3://bucket/jobs?endpoint=http://" + bucket.server.address() + more;
}

/// "KEY TOKEN" of the last request to the bucket.
std::string signed_by(FakeBucket& bucket) {
  const auto requests = bucket.s3.requests();
  if (requests.empty()) return "none";
  const auto& last = requests.back();
  const auto at = last.find("Credential=");
  return last.substr(at + 11, last.find('/', at) - at - 11) + " " + header(last, "x-amz-security-token");
}

std::string read_by(FakeBucket& bucket, const std::string& url) {
  const auto read = store(from_url(url), "jobs")->read(within(20s));
  if (!read) return read.error().message;
  return signed_by(bucket);
}

std::string keys_in_json(const std::string& key, const std::string& expires = "2999-01-01T00:00:00Z") {
  return http("200 OK", R"({"Code":"Success","AccessKeyId":")" + key + R"(","SecretAccessKey":")" + canary +
                            R"(","Token":"token-of-)" + key + R"(","Expiration":")" + expires + "\"}");
}

TEST(ObjectCredentials, TheUrlComesFirstAndThenTheEnvironment) {
  FakeBucket bucket;
  const Environment some(
      Variables{{"AWS_ACCESS_KEY_ID", "env"}, {"AWS_SECRET_ACCESS_KEY", canary}, {"AWS_SESSION_TOKEN", "session"}});
  EXPECT_EQ(read_by(bucket, bucket.url()), "key ");
  EXPECT_EQ(read_by(bucket, keyless(bucket)), "env session");
  EXPECT_TRUE(mentions(bucket.s3.requests().back(), "x-amz-date;x-amz-security-token,")) << "it is signed, too";
}

TEST(ObjectCredentials, AProfileOfTheSharedFileIsRead) {
  FakeBucket bucket;
  const Scratch scratch;
  const auto file =
      scratch.file("credentials", "# ours\n[default]\naws_access_key_id = one\r\naws_secret_access_key=" + canary +
                                      "\n\n[other]\naws_access_key_id=two\n" + "aws_secret_access_key = " + canary +
                                      "\naws_session_token=t\n");
  {
    const Environment some(Variables{{"AWS_SHARED_CREDENTIALS_FILE", file}});
    EXPECT_EQ(read_by(bucket, keyless(bucket)), "one ");
    EXPECT_EQ(read_by(bucket, keyless(bucket, "&profile=other")), "two t");
    EXPECT_TRUE(mentions(read_by(bucket, keyless(bucket, "&profile=absent")), "the profile absent in "));
  }
  const Environment named(Variables{{"AWS_SHARED_CREDENTIALS_FILE", file}, {"AWS_PROFILE", "other"}});
  EXPECT_EQ(read_by(bucket, keyless(bucket)), "two t");
}

TEST(ObjectCredentials, WithoutAnyTheErrorSaysWhereTheyAreLookedFor) {
  FakeBucket bucket;
  const Environment none;
  const auto error = error_of(store(from_url(keyless(bucket)), "jobs")->read(within(20s)));
  expect_error(error, Fault::forbidden, {"AWS_ACCESS_KEY_ID", "~/.aws/credentials", "a role"});
  EXPECT_TRUE(bucket.s3.requests().empty());
}

TEST(ObjectCredentials, AWebIdentityIsExchanged) {
  FakeBucket bucket;
  const Scratch scratch;
  FakeServer sts([](const std::string& request) {
    EXPECT_TRUE(mentions(request, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Arole"));
    EXPECT_TRUE(mentions(request, "&WebIdentityToken=jwt."));
    return Answer{http("200 OK", "<R><Credentials><AccessKeyId>web</AccessKeyId><SecretAccessKey>" + canary +
                                     "</SecretAccessKey><SessionToken>wt</SessionToken>"
                                     "<Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></R>")};
  });
  const Environment some(Variables{{"AWS_WEB_IDENTITY_TOKEN_FILE", scratch.file("token", "jwt." + canary)},
                                   {"AWS_ROLE_ARN", "arn:aws:role"},
                                   {"AWS_ENDPOINT_URL_STS", "http://" + sts.address()}});
  EXPECT_EQ(read_by(bucket, keyless(bucket)), "web wt");
}

TEST(ObjectCredentials, TheContainersServiceIsAsked) {
  FakeBucket bucket;
  const Scratch scratch;
  FakeServer container([](const std::string& request) {
    EXPECT_TRUE(request.starts_with("GET /v2/credentials?a=b "));
    EXPECT_EQ(header(request, "Authorization"), "Basic " + canary);
    return Answer{keys_in_json("container")};
  });
  const Environment some(
      Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://" + container.address() + "/v2/credentials?a=b"},
                {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", scratch.file("token", "Basic " + canary)}});
  EXPECT_EQ(read_by(bucket, keyless(bucket)), "container token-of-container");
}

TEST(ObjectCredentials, ATokenIsSentToNoStrangerWithoutTls) {
  FakeBucket bucket;
  const Environment some(Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/x"},
                                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN", canary}});
  EXPECT_TRUE(mentions(read_by(bucket, keyless(bucket)), "without TLS; write https://"));
}

/// A session of its metadata, and then the role's keys: IMDSv2.
Answer metadata(const std::string& request, const std::string& keys) {
  if (request.starts_with("PUT /latest/api/token ")) {
    EXPECT_EQ(header(request, "X-aws-ec2-metadata-token-ttl-seconds"), "21600");
    return {http("200 OK", "session")};
  }
  EXPECT_EQ(header(request, "X-aws-ec2-metadata-token"), "session");
  if (request.starts_with("GET /latest/meta-data/iam/security-credentials/ ")) return {http("200 OK", "role\n")};
  EXPECT_TRUE(request.starts_with("GET /latest/meta-data/iam/security-credentials/role ")) << request;
  return {keys};
}

TEST(ObjectCredentials, TheInstancesMetadataIsAskedLast) {
  FakeBucket bucket;
  FakeServer imds([](const std::string& request) { return metadata(request, keys_in_json("instance")); });
  const Environment some(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + imds.address() + "/"}});
  EXPECT_EQ(read_by(bucket, keyless(bucket)), "instance token-of-instance");
}

TEST(ObjectCredentials, AnOddServiceIsAnErrorThatShowsNothingOfItsAnswer) {
  FakeBucket bucket;
  for (const auto& keys : {http("200 OK"), http("200 OK", "[]"), http("200 OK", R"({"AccessKeyId":7})"),
                           http("200 OK", R"({"AccessKeyId":"a b","SecretAccessKey":")" + canary + "\"}"),
                           http("404 Not Found", canary), std::string("garbage\r\n"), http("200 OK", canary)}) {
    FakeServer imds([&](const std::string& request) { return metadata(request, keys); });
    const Environment some(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + imds.address()}});
    const auto error = error_of(store(from_url(keyless(bucket)), "jobs")->read(within(20s)));
    EXPECT_TRUE(mentions(error.message, "no credentials: ")) << error.message;
    EXPECT_FALSE(mentions(error.message, canary)) << error.message;
  }
  EXPECT_TRUE(bucket.s3.requests().empty());
}

TEST(ObjectCredentials, TheyAreFoundAnewBeforeTheyExpire) {
  FakeBucket bucket;
  std::atomic<int> given{0};
  FakeServer imds([&](const std::string& request) {
    if (!mentions(request, "/role ")) return metadata(request, "");
    return metadata(request, keys_in_json("k" + std::to_string(++given), "2020-01-01T00:00:00Z"));
  });
  const Environment some(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + imds.address()}});
  const auto a = store(from_url(keyless(bucket)), "jobs");
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(a->read(within(20s)));
    EXPECT_EQ(signed_by(bucket), "k" + std::to_string(i) + " token-of-k" + std::to_string(i));
  }
}

TEST(ObjectCredentials, TheyAreFoundAnewWhenTheyAreRefusedOncePerCall) {
  FakeBucket bucket;
  std::atomic<int> given{0};
  FakeServer imds([&](const std::string& request) {
    if (!mentions(request, "/role ")) return metadata(request, "");
    return metadata(request, keys_in_json("k" + std::to_string(++given)));
  });
  std::atomic<int> writes{0};
  bucket.s3.first = [&](const std::string& request) -> std::optional<Answer> {
    if (request.starts_with("PUT ")) ++writes;
    if (!mentions(request, "Credential=k2/")) return Answer{failure("400 Bad Request", "ExpiredToken")};
    return std::nullopt;
  };
  const Environment some(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + imds.address()}});
  const auto a = store(from_url(keyless(bucket)), "jobs");
  EXPECT_TRUE(tenure::test::swap(*a, std::nullopt, tenure::test::record(1, 11))) << "in mid-call";
  EXPECT_EQ(writes, 1) << "the first refusal was that of the read";
  bucket.s3.first = [](const std::string&) { return Answer{failure("403 Forbidden", "ExpiredToken", canary)}; };
  const auto before = bucket.s3.requests().size();
  expect_error(error_of(a->read(within(20s))), Fault::forbidden, {"ExpiredToken", "the EC2 instance's metadata"});
  EXPECT_EQ(bucket.s3.requests().size() - before, 2U);
}

TEST(ObjectCredentials, WhoseKeysExpireInMidLeaseKeepsItsTenureByNewOnes) {
  FakeBucket bucket;
  std::atomic<int> given{0};
  FakeServer imds([&](const std::string& request) {
    if (!mentions(request, "/role ")) return metadata(request, "");
    return metadata(request, keys_in_json("k" + std::to_string(++given)));
  });
  std::atomic<int> valid{1};
  bucket.s3.first = [&](const std::string& request) -> std::optional<Answer> {
    if (mentions(request, "Credential=k" + std::to_string(valid) + "/")) return std::nullopt;
    return Answer{failure("400 Bad Request", "ExpiredToken")};
  };
  const Environment some(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + imds.address()}});
  const auto leader = open(from_url(keyless(bucket)), "jobs");
  const auto granted = leader->acquire(within(20s));
  ASSERT_TRUE(std::holds_alternative<Granted>(granted));
  const auto token = std::get<Granted>(granted).token;
  for (valid = 2; valid < 5; ++valid) EXPECT_TRUE(std::holds_alternative<Granted>(leader->renew(token, within(20s))));
  EXPECT_EQ(given, 4);
  valid = 99;
  const auto refused = leader->renew(token, within(20s));
  ASSERT_TRUE(std::holds_alternative<Unknown>(refused)) << "which denies nothing: the lease lasts to its end";
  EXPECT_EQ(std::get<Unknown>(refused).error.fault, Fault::forbidden);
}

// ---- Google ----

/// An object that is there, for whoever has this token.
Answer of_google(const std::string& request, const std::string& token) {
  if (header(request, "Authorization") != "Bearer " + token) return {http("401 Unauthorized", canary)};
  EXPECT_TRUE(request.starts_with("GET /storage/v1/b/bucket/o/tenure%2Fjobs?alt=media ")) << request;
  return {http("404 Not Found", "No such object: bucket/tenure/jobs")};
}

TEST(ObjectGoogle, AServiceAccountSignsForAToken) {
  FakeServer google([](const std::string& request) { return of_google(request, "account-token"); });
  FakeServer tokens([](const std::string& request) {
    EXPECT_TRUE(mentions(request, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="));
    const auto said = request.substr(request.find("assertion=") + 10);
    EXPECT_TRUE(signed_by_test_key(said)) << said;
    return Answer{http("200 OK", R"({"access_token":"account-token","expires_in":3600})")};
  });
  const Scratch scratch;
  const auto file = scratch.file("account.json", account_json("http://" + tokens.address() + "/token"));
  const Environment some(Variables{{"GOOGLE_APPLICATION_CREDENTIALS", file}});
  const auto read = store(from_url("gs://bucket?endpoint=http://" + google.address()), "jobs")->read(within(20s));
  EXPECT_TRUE(read) << read.error().message;
}

TEST(ObjectGoogle, TheMachinesMetadataGivesATokenAndANewOneWhenThatIsRefused) {
  std::atomic<int> given{0};
  FakeServer machine([&](const std::string& request) {
    EXPECT_EQ(header(request, "Metadata-Flavor"), "Google");
    EXPECT_TRUE(request.starts_with("GET /computeMetadata/v1/instance/service-accounts/default/token "));
    return Answer{http("200 OK", R"({"access_token":"t)" + std::to_string(++given) + R"(","expires_in":3600})")};
  });
  FakeServer google([](const std::string& request) { return of_google(request, "t2"); });
  const Environment some(Variables{{"GCE_METADATA_HOST", machine.address()}});
  const auto a = store(from_url("gs://bucket?endpoint=http://" + google.address()), "jobs");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(a->read(within(20s)));
  EXPECT_EQ(given, 2) << "the second one lasts";
}

TEST(ObjectGoogle, AnOddAccountOrServiceIsAnErrorThatShowsNothingOfIt) {
  FakeServer odd(
      [](const std::string&) { return Answer{http("200 OK", R"({"access_token":"a b )" + canary + "\"}")}; });
  const Scratch scratch;
  for (const auto& text :
       {std::string("[]"), std::string("{}"), R"({"type":"authorized_user","refresh_token":")" + canary + "\"}",
        R"({"type":"service_account","private_key":")" + canary + "\"}",
        account_json("http://" + odd.address() + "/")}) {
    const Environment some(Variables{{"GOOGLE_APPLICATION_CREDENTIALS", scratch.file("account.json", text)}});
    const auto error = error_of(store(from_url("gs://bucket?endpoint=http://127.0.0.1:1"), "jobs")->read(within(20s)));
    expect_error(error, Fault::forbidden, {"no credentials: "});
  }
}

// ---- functions ----

TEST(ObjectCredentials, AFunctionIsAskedAgainWhenItsKeysAreRefused) {
  const Environment none;
  FakeBucket bucket;
  bucket.s3.first = [&](const std::string& request) -> std::optional<Answer> {
    if (mentions(request, "Credential=k1/")) return Answer{failure("403 Forbidden", "InvalidAccessKeyId", canary)};
    return std::nullopt;
  };
  auto options = from_url(keyless(bucket));
  std::atomic<int> asked{0};
  options.credentials = [&] { return Credentials{"k" + std::to_string(++asked), canary}; };
  EXPECT_TRUE(store(options, "jobs")->read(within(20s)));
  EXPECT_EQ(asked, 2);
  options.credentials = []() -> Credentials { throw std::runtime_error("the vault is away"); };
  EXPECT_TRUE(mentions(error_of(store(options, "jobs")->read(within(20s))).message, "the vault is away"));
  options.user = "u";
  options.password = canary;
  EXPECT_THROW(store(options, "jobs"), std::invalid_argument);
}

}  // namespace
}  // namespace tenure::object::test
