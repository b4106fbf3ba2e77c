// SPDX-License-Identifier: Apache-2.0
// Writes requests as S3 reads them, and reads its answers and errors.
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "dialect.hpp"

namespace tenure::object {
namespace {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("libcrypto makes no SHA-256");
  return hex(std::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

web::Request request(const Options& options, std::string method, const std::string& object, std::string body) {
  web::Request out{.method = std::move(method), .path = server_of(options).folder + object, .body = std::move(body)};
  out.headers = {"x-amz-content-sha256: " + sha256(out.body)};
  return out;
}

constexpr std::array meanings{
    Meaning{"NoSuchBucket", Fault::misconfigured, "make the bucket, or correct the URL"},
    Meaning{"AccessDenied", Fault::forbidden,
            "allow s3:GetObject and s3:PutObject on the bucket's PREFIX/*, and s3:ListBucket on the bucket: without "
            "that one a missing object is forbidden too; who only observes needs no s3:PutObject"},
    Meaning{"RequestTimeTooSkewed", Fault::misconfigured,
            "set this host's wall clock right, by NTP: the server demands that it is within 15 minutes of its own"},
    Meaning{"InvalidAccessKeyId", Fault::forbidden, "check the access key's id"},
    Meaning{"SignatureDoesNotMatch", Fault::forbidden, "check the access key's secret"},
    Meaning{"ExpiredToken", Fault::forbidden, "the session's token has expired: renew it where it is found"},
    Meaning{"InvalidToken", Fault::forbidden, "check the session's token"},
    Meaning{"NotImplemented", Fault::misconfigured,
            "this server knows no conditional writes (If-Match, If-None-Match): upgrade it, or take another one"},
};

std::string code_of(const web::Answer& answer) { return element(answer.body, "Code"); }

bool one_of(const std::string& code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

/// Where the bucket is, if it is elsewhere.
std::string region_told(const web::Answer& answer) {
  auto out = header_of(answer, "x-amz-bucket-region");
  return out.empty() ? element(answer.body, "Region") : out;
}

class S3 final : public Dialect {
 public:
  using Dialect::Dialect;

  web::Request get(const std::string& object) const override { return request(options_, "GET", object, {}); }

  web::Request put(const std::string& object, std::string body, const Demand& demand) const override {
    auto out = request(options_, "PUT", object, std::move(body));
    out.headers.emplace_back("Content-Type: application/json");
    out.headers.push_back(demand ? "If-Match: " + *demand : "If-None-Match: *");
    return out;
  }

  /// By libcurl, when it is sent.
  web::Request signed_by(const Login& login, web::Request request) const override {
    request.signing = "aws:amz:" + options_.region + ":s3";
    request.key = login.key;
    request.secret = login.secret;
    if (!login.token.empty()) request.headers.push_back("x-amz-security-token: " + login.token);
    return request;
  }

  std::optional<web::Request> ask_for(Setting setting) const override {
    return get(setting == Setting::versions ? "?versioning=" : "?lifecycle=");
  }

  std::optional<bool> is_on(Setting setting, const web::Answer& answer) const override {
    if (answer.status == 404 && setting == Setting::expiry) return false;
    if (answer.status != 200) return std::nullopt;
    if (setting == Setting::versions) return element(answer.body, "Status") == "Enabled";
    return answer.body.find("<Expiration>") != answer.body.npos;
  }

  bool absent(const web::Answer& answer) const override {
    return answer.status == 404 && code_of(answer) == "NoSuchKey";
  }

  bool refuses_login(const web::Answer& answer) const override {
    return answer.status >= 400 && one_of(code_of(answer), {"ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
                                                            "SignatureDoesNotMatch", "TokenRefreshRequired"});
  }

  bool throttles(const web::Answer& answer) const override {
    return answer.status == 429 ||
           (answer.status >= 400 &&
            one_of(code_of(answer), {"SlowDown", "RequestLimitExceeded", "Throttling", "ServiceUnavailable"}));
  }

  Error error_of(const web::Answer& answer, const Redactor& redacted) const override {
    const auto name = site().name;
    if (const auto region = region_told(answer); answer.status >= 300 && !region.empty() && region != options_.region)
      return {Fault::misconfigured, name + ": the bucket is in another region than " + options_.region +
                                        "; write ?region=" + printable(redacted(region), 40)};
    return error_told(name, "S3", code_of(answer), answer, redacted, meanings);
  }

  Result<Login> log_in(const web::Until& until) const override { return find_login(options_, until); }
  std::optional<std::string> version_of(const web::Answer& answer) const override { return etag_of(answer); }
};

}  // namespace

std::unique_ptr<Dialect> s3(const Options& options) { return std::make_unique<S3>(options); }

}  // namespace tenure::object
