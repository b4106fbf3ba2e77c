// SPDX-License-Identifier: Apache-2.0
// Goal: URLs and answers are read strictly, and whoever is refused learns why. Method: texts, without a server.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "dialect.hpp"
#include "environment.hpp"
#include "fake_s3.hpp"
#include "odd_names.hpp"
#include "options.hpp"
#include "refusal.hpp"

namespace tenure::object::test {
namespace {

using tenure::test::canary;
using tenure::test::expect_error;
using tenure::test::mentions;

std::string refusal(const std::string& url) {
  return tenure::test::refusal_of([&] { checked(from_url(url)); });
}

TEST(ObjectOptions, AUrlNamesABucketAPrefixAndSettings) {
  const Environment none;
  const auto plain = from_url("s3://ID:sec%2Fret@b.c/app/x?region=eu-west-1&profile=p");
  EXPECT_EQ(plain.bucket + " " + plain.prefix + " " + plain.user + " " + plain.password, "b.c app/x ID sec/ret");
  EXPECT_EQ(plain.region + " " + plain.profile, "eu-west-1 p");
  EXPECT_EQ(from_url("s3://bucket?region=r").prefix, "tenure");
  const auto server = [](const std::string& url) {
    const auto out = server_of(checked(from_url(url)));
    return std::string(out.tls ? "https " : "http ") + out.host + " " + out.folder;
  };
  EXPECT_EQ(server("s3://bucket?region=eu-west-1"), "https bucket.s3.eu-west-1.amazonaws.com /");
  EXPECT_EQ(server("s3://b.c.d?region=eu-west-1"), "https s3.eu-west-1.amazonaws.com /b.c.d/");
  EXPECT_EQ(server("s3://bucket?region=cn-north-1"), "https bucket.s3.cn-north-1.amazonaws.com.cn /");
  EXPECT_EQ(server("s3://bucket?endpoint=http://%5B::1%5D:9000"), "http [::1]:9000 /bucket/");
  EXPECT_EQ(server("gs://bucket/x"), "https storage.googleapis.com ");
  EXPECT_EQ(from_url("az://account/container/app/x").prefix, "app/x");
  EXPECT_EQ(server_at("http://[::1]", "x").name + " " + server_at("http://[::1]:9000", "x").name, "::1 ::1");
  EXPECT_EQ(server("az://account/container"), "https account.blob.core.windows.net /container/");
  EXPECT_EQ(server("az://account/container?endpoint=http://127.0.0.1:10000"),
            "http 127.0.0.1:10000 /account/container/");
  EXPECT_EQ(server("az://account/container?endpoint=https://account.blob.core.chinacloudapi.cn"),
            "https account.blob.core.chinacloudapi.cn /container/");
  EXPECT_EQ(checked(from_url("s3://bucket?endpoint=https://h")).region, "us-east-1");
  const Environment some(std::map<std::string, std::string>{{"AWS_DEFAULT_REGION", "r2"}});
  EXPECT_EQ(checked(from_url("s3://bucket")).region, "r2");
}

TEST(ObjectOptions, WhatCanNeverWorkIsRefusedWithWhatWouldBeRight) {
  const Environment none;
  for (const auto& [url, says] : std::vector<std::pair<std::string, std::string>>{
           {"s3:///x", "write s3://BUCKET/PREFIX"},
           {"s3://a,b", "write s3://BUCKET/PREFIX"},
           {"s3://bucket:9000/x", "?endpoint=https://host:port"},
           {"http://bucket", "use s3, gs or az"},
           {"gs://u:p@bucket", "GOOGLE_APPLICATION_CREDENTIALS"},
           {"gs://bucket?region=r", "has no setting \"region\""},
           {"az://account", "container must have"},
           {"az://Account/container", "account must have"},
           {"az://account:1/container", "write az://ACCOUNT/CONTAINER/PREFIX"},
           {"az://other:a2V5@account/container", "the user must be the account"},
           {"s3://bucket", "?region=eu-west-1, or set AWS_REGION"},
           {"s3://bucket?region=a/b", "region must be a name"},
           {"s3://BUCKET?region=r", "small letters"},
           {"s3://ab?region=r", "3 to 63"},
           {"s3://bucket/a//b?region=r", "prefix must have"},
           {"s3://bucket/a/../b?region=r", "prefix must have"},
           {"s3://bucket/a%20b?region=r", "prefix must have"},
           {"s3://bucket/" + std::string(201, 'x') + "?region=r", "prefix must have"},
           {"s3://id@bucket?region=r", "belong together"},
           {"s3://bucket?endpoint=ftp://h", "endpoint must be http:// or https://"},
           {"s3://bucket?endpoint=http://h/path", "endpoint must be http:// or https://"},
           {"s3://bucket?endpoint=http://h&ca_file=f", "ca_file is set without TLS"},
           {"s3://bucket?regoin=r", "did you mean \"region\""}})
    EXPECT_TRUE(mentions(refusal(url), says)) << url << ": " << refusal(url);
  EXPECT_FALSE(mentions(refusal("s3://:" + canary + "@bucket?region=r"), canary));
}

TEST(ObjectOptions, DifferentElectionsHaveDifferentObjectsWhoseNamesNeedNoEscape) {
  const Options options{.bucket = "b", .prefix = "p"};
  EXPECT_EQ(object_of(options, "a.b-C_1"), "p/a.b-C_1");
  EXPECT_EQ(object_of(options, "a/b~"), "p/a~2fb~7e");
  EXPECT_EQ(object_of(options, ".."), "p/~2e~2e");
  EXPECT_EQ(object_of(options, "jobs."), "p/jobs~2e") << "Azure would drop the dot";
  std::set<std::string> seen;
  for (const auto& name : contract::odd_names()) {
    const auto object = object_of(options, name);
    EXPECT_TRUE(seen.insert(object).second) << object;
    EXPECT_EQ(object.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"),
              object.npos);
  }
  EXPECT_THROW(object_of(options, ""), std::invalid_argument);
}

const Options of_s3{.bucket = "bucket", .region = "r1", .endpoint = "http://h"};

/// An absent record is a ground for a claim.
TEST(ObjectAnswer, NothingLessThanTheServersOwnWordIsTakenForAnAbsentObject) {
  const auto s3 = dialect_of(of_s3);
  EXPECT_TRUE(s3->absent(answer(no_such_key)));
  for (const auto& bytes : {http("404 Not Found"), http("404 Not Found", "<html>NoSuchKey</html>"),
                            failure("404 Not Found", "NoSuchBucket"), failure("400 Bad Request", "NoSuchKey"),
                            http("200 OK", "<Code>NoSuchKey</Code>")})
    EXPECT_FALSE(s3->absent(answer(bytes))) << bytes;
}

TEST(ObjectAnswer, AVersionIsTakenAsTheServerWritesIt) {
  const auto version = [](const std::string& headers) {
    return dialect_of(of_s3)->version_of(answer(http("200 OK", "", headers)));
  };
  EXPECT_EQ(version("ETag: \"a\"\r\n"), "\"a\"");
  EXPECT_EQ(version("etag:a\r\n"), "a");
  for (const auto& headers :
       {std::string(), std::string("ETag: \r\n"), std::string("ETag: *\r\n"), std::string("ETag: W/\"a\"\r\n"),
        std::string("ETag: a b\r\n"), "ETag: " + std::string(1025, 'x') + "\r\n", std::string("ETagg: a\r\n")})
    EXPECT_EQ(version(headers), std::nullopt) << headers;
}

TEST(ObjectAnswer, EachErrorIsOfAKindAndNamesARemedy) {
  const auto s3 = dialect_of(of_s3);
  const auto error = [&](const std::string& bytes) { return s3->error_of(answer(bytes), Redactor({canary})); };
  expect_error(error(failure("403 Forbidden", "RequestTimeTooSkewed")), Fault::misconfigured, {"wall clock", "NTP"});
  expect_error(error(failure("403 Forbidden", "AccessDenied")), Fault::forbidden, {"s3:ListBucket"});
  expect_error(error(failure("404 Not Found", "NoSuchBucket")), Fault::misconfigured, {"make the bucket"});
  expect_error(error(failure("501 Not Implemented", "NotImplemented")), Fault::misconfigured, {"conditional writes"});
  expect_error(error(failure("403 Forbidden", "ExpiredToken", canary)), Fault::forbidden, {"renew it", "***"});
  expect_error(error(failure("403 Forbidden", "Other")), Fault::forbidden, {"Other"});
  expect_error(error(failure("503 Slow Down", "SlowDown")), Fault::unreachable, {"SlowDown"});
  expect_error(error(failure("301 Moved", "PermanentRedirect", "no", "x-amz-bucket-region: eu-north-1\r\n")),
               Fault::misconfigured, {"another region than r1", "?region=eu-north-1"});
  expect_error(error(http("400 Bad", "<Error><Code>AuthorizationHeaderMalformed</Code><Region>r2</Region></Error>")),
               Fault::misconfigured, {"?region=r2"});
  expect_error(error(http("502 Bad Gateway", "<html>" + canary)), Fault::unreachable, {"no answer of S3", "<html>***"});
}

TEST(ObjectGcs, NothingLessThanTheServersOwnWordIsTakenForAnAbsentObject) {
  const auto google = dialect_of({.service = Service::gcs, .bucket = "bucket"});
  EXPECT_TRUE(google->absent(answer(http("404 Not Found", "No such object: bucket/tenure/jobs"))));
  for (const auto& bytes :
       {http("404 Not Found"), http("404 Not Found", "Not Found\n"), http("200 OK", "No such object: bucket/x")})
    EXPECT_FALSE(google->absent(answer(bytes))) << bytes;
}

TEST(ObjectGcs, AGenerationIsANumberAboveZero) {
  const auto google = dialect_of({.service = Service::gcs, .bucket = "bucket"});
  const auto version = [&](const std::string& body, const std::string& headers) {
    return google->version_of(answer(http("200 OK", body, headers)));
  };
  EXPECT_EQ(version("", "x-goog-generation: 7\r\n"), "7");
  EXPECT_EQ(version(R"({"generation":"8"})", ""), "8");
  for (const auto* body : {"", "{}", "[]", R"({"generation":8})", R"({"generation":"0"})", R"({"generation":"-1"})",
                           R"({"generation":"8&x"})", R"({"generation":"99999999999999999999"})"})
    EXPECT_EQ(version(body, ""), std::nullopt) << body;
}

TEST(ObjectGcs, EachErrorIsOfAKindAndNamesARemedy) {
  const auto google = dialect_of({.service = Service::gcs, .bucket = "bucket"});
  const auto error = [&](const std::string& status, const std::string& message) {
    return google->error_of(answer(http(status, R"({"error":{"message":")" + message + "\"}}")), Redactor({canary}));
  };
  expect_error(error("401 X", canary), Fault::forbidden, {"***", "the token is not valid"});
  expect_error(error("403 X", "no"), Fault::forbidden, {"storage.objects.get", ".delete"});
  expect_error(error("404 X", "The specified bucket does not exist."), Fault::misconfigured, {"make the bucket"});
  expect_error(error("500 X", "Backend Error"), Fault::unreachable, {"Backend Error"});
}

TEST(ObjectGcs, ARuleThatDeletesWhatNobodyReplacedIsSeen) {
  const auto google = dialect_of({.service = Service::gcs, .bucket = "bucket"});
  const auto deletes = [&](const std::string& rule) {
    return google->is_on(Setting::expiry, answer(http("200 OK", R"({"lifecycle":{"rule":[)" + rule + "]}}")));
  };
  EXPECT_EQ(deletes(""), false);
  EXPECT_EQ(deletes(R"({"action":{"type":"Delete"},"condition":{"age":7}})"), true);
  EXPECT_EQ(deletes(R"({"action":{"type":"Delete"}})"), true);
  EXPECT_EQ(deletes(R"({"action":{"type":"SetStorageClass"},"condition":{"age":7}})"), false);
  EXPECT_EQ(deletes(R"({"action":{"type":"Delete"},"condition":{"isLive":false}})"), false);
  EXPECT_EQ(deletes(R"({"action":{"type":"Delete"},"condition":{"daysSinceNoncurrentTime":1}})"), false);
  EXPECT_EQ(deletes(R"(7,{"action":7},{"action":{"type":"Delete"},"condition":7})"), true);
  for (const auto& [body, says] : std::vector<std::pair<std::string, std::optional<bool>>>{
           {"{}", false}, {R"({"versioning":{"enabled":true}})", true}, {R"({"versioning":7})", false}, {"[", {}}})
    EXPECT_EQ(google->is_on(Setting::versions, answer(http("200 OK", body))), says) << body;
  EXPECT_EQ(google->is_on(Setting::expiry, answer(http("403 X", "{}"))), std::nullopt);
}

TEST(ObjectCredentials, AMomentIsReadOrNone) {
  EXPECT_EQ(moment_of("1970-01-02T00:00:01Z"), 86'401'000);
  for (const auto* text :
       {"", "Z", "1970-13-02T00:00:01Z", "1970-01-02", "1970-01-02T00:00:xxZ", "1970-01-02T00:00:01"})
    EXPECT_EQ(moment_of(text), 0) << text;
}

}  // namespace
}  // namespace tenure::object::test
