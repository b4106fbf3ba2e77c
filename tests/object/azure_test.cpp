// SPDX-License-Identifier: Apache-2.0
// Goal: Azure's keys and tokens are found where Azure's own tools find them, found anew when they are refused, and
// never told; its answers are read strictly. Method: texts, and services that answer as their public description says.
// Whether our signature is right, only a server that knows the key can say: store_test.cpp has one.
#include "dialect.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "environment.hpp"
#include "fake_s3.hpp"
#include "scratch.hpp"
#include "store_calls.hpp"

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

const std::string missing = failure("404 Not Found", "BlobNotFound");

/// What the last request to a container proves itself by. It lets everybody in, but for who has a token of `refused`.
class Container {
 public:
  explicit Container(std::string refused = "Bearer none") : refused_(std::move(refused)) {}

  std::string url(const std::string& user = {}) const {
    return "az://" + user + "account/box/jobs?endpoint=http://" + server_.address();
  }
  std::string proof() const {
    const auto shown = header(last_, "Authorization");
    return shown.empty() ? last_.substr(0, last_.find(" HTTP")) : shown;
  }
  std::string asked() const { return last_; }

 private:
  std::string refused_, last_;
  FakeServer server_{[this](const std::string& request) {
    last_ = request;
    return Answer{proof() == refused_ ? failure("401 Unauthorized", "InvalidAuthenticationInfo", canary) : missing};
  }};
};

std::string proof_of(const Container& container, const std::string& user = {}) {
  const auto read = store(from_url(container.url(user)), "jobs")->read(within(20s));
  return read ? container.proof() : read.error().message;
}

std::string token(const std::string& text, const std::string& lasts = R"("expires_in":3600)") {
  return http("200 OK", R"({"access_token":")" + text + "\"," + lasts + "}");
}

TEST(ObjectAzure, TheUrlsKeyComesFirstAndThenThoseOfTheEnvironment) {
  const Container box;
  const auto shared = [](const std::string& proof) { return proof.substr(0, proof.find(':')); };
  const Environment some(Variables{{"AZURE_STORAGE_KEY", "a2V5"}, {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=x%2B"}});
  EXPECT_EQ(shared(proof_of(box, "account:c2VjcmV0@")), "SharedKey account");
  const auto of_url = box.proof();
  EXPECT_EQ(shared(proof_of(box)), "SharedKey account");
  EXPECT_NE(box.proof(), of_url) << "another key signs otherwise";
  EXPECT_TRUE(mentions(box.asked(), "x-ms-version: 20")) << box.asked();
}

TEST(ObjectAzure, ASharedAccessSignatureStandsInTheQuery) {
  const Container box;
  const Environment some(Variables{{"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=x%2B"}});
  EXPECT_EQ(proof_of(box), "GET /account/box/jobs/jobs?sv=1&sig=x%2B");
}

/// A gateway may show a request as HTML has it, or decoded.
TEST(ObjectAzure, AServerThatRepeatsASignatureDoesNotHaveItTold) {
  const Environment some(Variables{{"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=" + canary + "%2B&se=2"}});
  for (const auto& sent : {"sv=1&amp;sig=" + canary + "%2B&amp;se=2", "sig: " + canary + "+"}) {
    FakeServer repeats([&](const std::string&) { return Answer{http("502 Bad Gateway", "for " + sent)}; });
    const auto read =
        store(from_url("az://account/box/jobs?endpoint=http://" + repeats.address()), "jobs")->read(within(20s));
    const auto message = error_of(read).message;
    EXPECT_TRUE(mentions(message, "for ")) << message;
    EXPECT_FALSE(mentions(message, canary)) << message;
  }
}

TEST(ObjectAzure, AnApplicationProvesItselfByASecretOrByWhatItsClusterSays) {
  std::string asked;
  FakeServer entra([&](const std::string& request) {
    asked = request;
    return Answer{token("t1")};
  });
  const Scratch scratch;
  Variables given{{"AZURE_AUTHORITY_HOST", "http://" + entra.address() + "/"},
                  {"AZURE_TENANT_ID", "my-tenant"},
                  {"AZURE_CLIENT_ID", "me"},
                  {"AZURE_FEDERATED_TOKEN_FILE", scratch.file("token", "a.b-c\n")}};
  const Container box;
  {
    const Environment some(given);
    EXPECT_EQ(proof_of(box), "Bearer t1");
    EXPECT_TRUE(asked.starts_with("POST /my-tenant/oauth2/v2.0/token ")) << asked;
    EXPECT_TRUE(mentions(asked, "&client_assertion=a.b-c")) << asked;
  }
  given["AZURE_CLIENT_SECRET"] = "s&x";
  const Environment some(given);
  EXPECT_EQ(proof_of(box), "Bearer t1");
  EXPECT_TRUE(mentions(asked, "client_id=me&scope=https%3A%2F%2Fstorage.azure.com%2F.default&client_secret=s%26x"))
      << asked;
}

TEST(ObjectAzure, AnAppAsksItsOwnEndpoint) {
  FakeServer app([&](const std::string& request) {
    EXPECT_EQ(header(request, "X-IDENTITY-HEADER"), "pass");
    EXPECT_TRUE(
        request.starts_with("GET /msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fstorage.azure.com%2F "));
    return Answer{token("t2", R"("expires_on":"32503680000")")};
  });
  const Container box;
  const Environment some(
      Variables{{"IDENTITY_ENDPOINT", "http://" + app.address() + "/msi/token"}, {"IDENTITY_HEADER", "pass"}});
  EXPECT_EQ(proof_of(box), "Bearer t2");
}

TEST(ObjectAzure, TheMachinesIdentityGivesATokenAndANewOneWhenThatIsRefused) {
  std::atomic<int> given{0};
  FakeServer machine([&](const std::string& request) {
    EXPECT_EQ(header(request, "Metadata"), "true");
    EXPECT_TRUE(mentions(request, "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=")) << request;
    EXPECT_TRUE(mentions(request, "&client_id=me ")) << request;
    return Answer{token("t" + std::to_string(++given), R"("expires_in":"3599")")};
  });
  const Container box("Bearer t1");
  const Environment some(
      Variables{{"AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://" + machine.address()}, {"AZURE_CLIENT_ID", "me"}});
  const auto a = store(from_url(box.url()), "jobs");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(a->read(within(20s)));
  EXPECT_EQ(given, 2) << "the second one lasts";
}

TEST(ObjectAzure, ATokenIsFoundAnewBeforeItExpires) {
  for (const auto* lasts : {R"("expires_in":"200")", R"("expires_on":"1000")"}) {
    std::atomic<int> given{0};
    FakeServer machine([&](const std::string&) { return Answer{token("t" + std::to_string(++given), lasts)}; });
    const Container box;
    const Environment some(Variables{{"AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://" + machine.address()}});
    const auto a = store(from_url(box.url()), "jobs");
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(a->read(within(20s)));
    EXPECT_EQ(given, 2) << lasts;
  }
}

TEST(ObjectAzure, WhatIsNoKeyAndNoTokenIsAnErrorThatShowsNothingOfIt) {
  const Container box;
  FakeServer odd([](const std::string&) { return Answer{token("a b " + canary)}; });
  for (const auto& variables :
       {Variables{{"AZURE_STORAGE_KEY", "=" + canary}}, Variables{{"AZURE_STORAGE_SAS_TOKEN", "sig= " + canary}},
        Variables{{"AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://" + odd.address()}}, Variables{}}) {
    const Environment some(variables);
    const auto error = error_of(store(from_url(box.url()), "jobs")->read(within(20s)));
    EXPECT_TRUE(mentions(error.message, "no credentials: ")) << error.message;
    EXPECT_FALSE(mentions(error.message, canary)) << error.message;
  }
  EXPECT_EQ(box.asked(), "");
}

/// A secret goes to who may have it alone.
TEST(ObjectAzure, NoSecretIsSentWithoutTlsToAnotherHost) {
  const Container box;
  for (const auto* host : {"http://login.invalid", "http://169.254.login.invalid", "http://127.login.invalid"}) {
    const Environment some(Variables{{"IDENTITY_ENDPOINT", std::string(host) + "/x"}, {"IDENTITY_HEADER", canary}});
    expect_error(error_of(store(from_url(box.url()), "jobs")->read(within(20s))), Fault::forbidden, {"write https://"});
  }
  for (const auto& variables :
       {Variables{{"AZURE_AUTHORITY_HOST", "http://login.invalid"},
                  {"AZURE_TENANT_ID", "t"},
                  {"AZURE_CLIENT_ID", "me"},
                  {"AZURE_CLIENT_SECRET", canary}},
        Variables{{"IDENTITY_ENDPOINT", "http://app.invalid/msi/token"}, {"IDENTITY_HEADER", canary}}}) {
    const Environment some(variables);
    expect_error(error_of(store(from_url(box.url()), "jobs")->read(within(20s))), Fault::forbidden,
                 {".invalid without TLS; write https://"});
  }
}

TEST(ObjectAzure, AFunctionGivesTheAccountsKeyOrAToken) {
  const Environment none;
  const Container box;
  auto options = from_url(box.url());
  options.credentials = [] { return Credentials{"", "token"}; };
  EXPECT_TRUE(store(options, "jobs")->read(within(20s)));
  EXPECT_EQ(box.proof(), "Bearer token");
  options.credentials = [] { return Credentials{"account", "a2V5"}; };
  EXPECT_TRUE(store(options, "jobs")->read(within(20s)));
  EXPECT_TRUE(mentions(box.proof(), "SharedKey account:"));
  options.credentials = [] { return Credentials{"another", "a2V5"}; };
  EXPECT_TRUE(mentions(error_of(store(options, "jobs")->read(within(20s))).message, "another user than the account"));
}

// ---- answers ----

const Options of_azure{.service = Service::azure, .account = "account", .bucket = "box"};

/// An absent record is a ground for a claim.
TEST(ObjectAzure, NothingLessThanTheServersOwnWordIsTakenForAnAbsentBlob) {
  const auto azure = dialect_of(of_azure);
  EXPECT_TRUE(azure->absent(answer(missing)));
  EXPECT_TRUE(azure->absent(answer(http("404 Not Found", "", "x-ms-error-code: BlobNotFound\r\n"))));
  for (const auto& bytes : {http("404 Not Found"), failure("404 Not Found", "ContainerNotFound"),
                            failure("404 Not Found", "ResourceNotFound"), failure("400 Bad Request", "BlobNotFound")})
    EXPECT_FALSE(azure->absent(answer(bytes))) << bytes;
}

TEST(ObjectAzure, EachErrorIsOfAKindAndNamesARemedy) {
  const auto azure = dialect_of(of_azure);
  const auto error = [&](const std::string& bytes) { return azure->error_of(answer(bytes), Redactor({canary})); };
  expect_error(error(failure("404 X", "ContainerNotFound")), Fault::misconfigured, {"make the container"});
  expect_error(error(failure("403 X", "AuthenticationFailed", canary)), Fault::forbidden, {"wall clock", "***"});
  expect_error(error(failure("403 X", "AuthorizationPermissionMismatch")), Fault::forbidden, {"Blob Data Contributor"});
  expect_error(error(failure("403 X", "AuthorizationFailure")), Fault::forbidden, {"network rules"});
  expect_error(error(failure("503 X", "ServerBusy")), Fault::unreachable, {"ServerBusy"});
  expect_error(error(http("502 X", "<html>" + canary)), Fault::unreachable, {"no answer of Azure", "<html>***"});
}

TEST(ObjectAzure, AMomentIsWrittenAsHttpWritesIt) {
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1'798'000'000), "Wed, 23 Dec 2026 04:26:40 GMT");
}

}  // namespace
}  // namespace tenure::object::test
