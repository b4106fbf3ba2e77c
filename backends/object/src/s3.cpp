// SPDX-License-Identifier: Apache-2.0
// The dialect of Amazon's S3, and of the servers that speak it: requests, answers and errors, and where logins are
// found.
#include <openssl/evp.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>

#include "dialect.hpp"
#include "web/record.hpp"

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

// ---- logins, where Amazon's own tools look for them: one source after the other ----

/// Nothing: this source is not set up here, so that the next one is asked.
using Found = std::optional<Result<Login>>;

constexpr std::size_t most_bytes_of_file = 256 << 10;

Result<Login> whole(Login login) {
  if (login.key.empty() || login.secret.empty())
    return no_credentials(login.source + " has no access key's id, or no secret");
  if (!fit_for_header(login.key) || !fit_for_header(login.secret) || !fit_for_header(login.token))
    return no_credentials(login.source + " has a key with a blank or a byte that no header can have");
  return login;
}

// ---- what is at hand ----

Found of_options(const Options& options) {
  if (options.credentials) {
    const auto found = credentials_by(options.credentials, Redactor({}));
    return whole({.key = found.user, .secret = found.password, .source = "what credentials() returned"});
  }
  if (options.user.empty()) return std::nullopt;
  return whole({.key = options.user, .secret = options.password, .source = "the URL's user and password"});
}

Found of_environment() {
  Login out{.key = variable("AWS_ACCESS_KEY_ID"), .secret = variable("AWS_SECRET_ACCESS_KEY")};
  if (out.key.empty() && out.secret.empty()) return std::nullopt;
  out.token = variable("AWS_SESSION_TOKEN");
  out.source = "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)";
  return whole(std::move(out));
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

Login of_profile(std::string_view text, const std::string& profile) {
  Login out;
  bool inside = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) inside = line == "[" + profile + "]";
    const auto equals = line.find('=');
    if (!inside || line.starts_with('#') || equals == line.npos) continue;
    const auto name = trimmed(line.substr(0, equals)), value = trimmed(line.substr(equals + 1));
    if (name == "aws_access_key_id") out.key = value;
    if (name == "aws_secret_access_key") out.secret = value;
    if (name == "aws_session_token") out.token = value;
  }
  return out;
}

Found of_file(const Options& options) {
  auto path = variable("AWS_SHARED_CREDENTIALS_FILE");
  const auto home = variable("HOME");
  if (path.empty() && !home.empty()) path = home + "/.aws/credentials";
  auto profile = options.profile.empty() ? variable("AWS_PROFILE") : options.profile;
  const bool named = !profile.empty();
  if (!named) profile = "default";
  const auto text = path.empty() ? Result<std::string>() : content_of(path, most_bytes_of_file);
  const auto where = "the profile " + printable(profile, 80) + " in " + printable(path);
  if (!text && named) return no_credentials("the file " + printable(path) + " " + text.error().message);
  if (!text) return std::nullopt;
  auto out = of_profile(*text, profile);
  if (out.key.empty() && out.secret.empty() && !named) return std::nullopt;
  out.source = where;
  return whole(std::move(out));
}

// ---- what is asked by HTTP ----

/// What container and instance answer.
Result<Login> of_json(const Result<std::string>& text, const std::string& source) {
  if (!text) return text.error();
  const auto json = web::parsed(*text);
  return whole({.key = member(json, "AccessKeyId"),
                .secret = member(json, "SecretAccessKey"),
                .token = member(json, "Token"),
                .source = source,
                .expires_ms = moment_of(member(json, "Expiration"))});
}

Found of_web_identity(const Options& options, const web::Until& until) {
  const auto file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), role = variable("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  const auto token = secret_of(file, most_bytes_of_file);
  if (!token) return no_credentials("the file of AWS_WEB_IDENTITY_TOKEN_FILE " + token.error().message);
  const auto given = variable("AWS_ENDPOINT_URL_STS"), session = variable("AWS_ROLE_SESSION_NAME");
  const auto* china = options.region.starts_with("cn-") ? ".cn" : "";
  const auto server = confidant_at(given.empty() ? "https://sts." + options.region + ".amazonaws.com" + china : given,
                                   "AWS_ENDPOINT_URL_STS");
  if (!server) return server.error();
  const auto who = "the token service " + server->host;
  const auto xml = fetch(*server,
                         {.method = "POST",
                          .path = "/",
                          .body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + form_encoded(role) +
                                  "&RoleSessionName=" + form_encoded(session.empty() ? "tenure" : session) +
                                  "&WebIdentityToken=" + form_encoded(*token)},
                         who, until);
  if (!xml) return xml.error();
  return whole({.key = element(*xml, "AccessKeyId"),
                .secret = element(*xml, "SecretAccessKey"),
                .token = element(*xml, "SessionToken"),
                .source = who,
                .expires_ms = moment_of(element(*xml, "Expiration"))});
}

Found of_container(const web::Until& until) {
  auto url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const auto relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !relative.empty())
    url = "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  const auto [base, path] = split_url(url);
  const auto server = confidant_at(base, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!server) return server.error();
  web::Request request{.method = "GET", .path = path};
  auto token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const auto file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    const auto read = secret_of(file, most_bytes_of_file);
    if (!read) return no_credentials("the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE " + read.error().message);
    token = *read;
  }
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain || !fit_for_header(path))
    return no_credentials("the container's URI or authorization token has a byte that no header can have");
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  const auto who = "the container's credentials at " + server->host;
  return of_json(fetch(*server, request, who, until), who);
}

Result<Login> of_instance(const web::Until& until) {
  const std::string folder = "/latest/meta-data/iam/security-credentials/", who = "the EC2 instance's metadata";
  auto at = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (at.empty()) at = "http://169.254.169.254";
  while (at.ends_with('/')) at.pop_back();
  const auto server = server_at(at, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const auto pass =
      fetch(server,
            {.method = "PUT", .path = "/latest/api/token", .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}},
            who, until);
  if (!pass) return pass.error();
  if (!fit_for_header(*pass)) return no_credentials(who + " gave a token that no header can have");
  const auto ask = [&](const std::string& path) {
    return fetch(server, {.method = "GET", .path = path, .headers = {"X-aws-ec2-metadata-token: " + *pass}}, who,
                 until);
  };
  const auto roles = ask(folder);
  if (!roles) return roles.error();
  const auto role = trimmed(roles->substr(0, roles->find('\n')));
  if (role.empty() || !fit_for_header(role)) return no_credentials(who + " names no role of this instance");
  return of_json(ask(folder + role), who);
}

Result<Login> find_login(const Options& options, const web::Until& until) {
  if (auto found = of_options(options)) return *std::move(found);
  if (options.profile.empty())
    if (auto found = of_environment()) return *std::move(found);
  if (auto found = of_web_identity(options, until)) return *std::move(found);
  if (auto found = of_file(options)) return *std::move(found);
  if (auto found = of_container(until)) return *std::move(found);
  const std::string all =
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a profile into ~/.aws/credentials, or give this "
      "machine a role";
  if (lower(variable("AWS_EC2_METADATA_DISABLED")) == "true") return no_credentials(all);
  auto found = of_instance(until);
  if (!found && found.error().fault != Fault::timed_out)
    return Error{found.error().fault, "no credentials: " + all + " (" + found.error().message + ")"};
  return found;
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
