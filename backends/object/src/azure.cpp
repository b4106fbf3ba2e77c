// SPDX-License-Identifier: Apache-2.0
// Writes requests as Azure reads them, reads its answers and errors, and finds logins where Azure's own tools do.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>

#include "dialect.hpp"
#include "web/base64.hpp"

namespace tenure::object {
namespace {

using Found = std::optional<Result<Login>>;

constexpr const char* protocol = "x-ms-version: 2021-08-06";
constexpr const char* resource = "https://storage.azure.com/";

// ---- signatures ----

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), digest.data(), &size) == nullptr)
    throw std::runtime_error("libcrypto makes no HMAC");
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string value_of(const web::Request& request, std::string_view name) {
  for (const auto& header : request.headers)
    if (header.starts_with(name) && header.compare(name.size(), 2, ": ") == 0) return header.substr(name.size() + 2);
  return {};
}

/// "Authorize with Shared Key" of Azure's description. REQUIRES: the request's path has no query.
std::string text_to_sign(const std::string& account, const web::Request& request) {
  auto out = request.method + "\n\n\n";
  if (!request.body.empty()) out += std::to_string(request.body.size());
  out += "\n\n" + value_of(request, "Content-Type") + "\n\n\n";
  out += value_of(request, "If-Match") + "\n" + value_of(request, "If-None-Match") + "\n\n\n";
  auto extensions = request.headers;
  std::erase_if(extensions, [](const std::string& header) { return !header.starts_with("x-ms-"); });
  std::sort(extensions.begin(), extensions.end());
  for (const auto& header : extensions) {
    const auto end = header.find(": ");
    out += header.substr(0, end) + ":" + header.substr(end + 2) + "\n";
  }
  return out + "/" + account + request.path;
}

// ---- what is at hand ----

/// The account's key; or, where there is no user, a token.
Result<Login> given(const Options& options, const Credentials& credentials, std::string source) {
  Login out{.source = std::move(source)};
  if (!credentials.user.empty() && credentials.user != options.account)
    return no_credentials(out.source + " has another user than the account " + options.account);
  if (credentials.user.empty()) {
    out.token = credentials.password;
    if (out.token.empty() || !fit_for_header(out.token))
      return no_credentials(out.source + " has no token that a header can have");
    return out;
  }
  const auto key = web::from_base64(credentials.password);
  if (!key || key->empty()) return no_credentials(out.source + " has a key of the account that is not base64");
  out.key = options.account;
  out.secret = credentials.password;
  return out;
}

Found at_hand(const Options& options) {
  if (options.credentials)
    return given(options, credentials_by(options.credentials, Redactor({})), "what credentials() returned");
  if (!options.user.empty()) return given(options, {options.user, options.password}, "the URL's user and password");
  if (const auto key = variable("AZURE_STORAGE_KEY"); !key.empty())
    return given(options, {options.account, key}, "the environment (AZURE_STORAGE_KEY)");
  auto signature = variable("AZURE_STORAGE_SAS_TOKEN");
  if (signature.empty()) return std::nullopt;
  if (signature.starts_with('?')) signature.erase(0, 1);
  if (!fit_for_header(signature)) return no_credentials("AZURE_STORAGE_SAS_TOKEN has a byte that no URL can have");
  return Login{.secret = std::move(signature), .source = "the environment (AZURE_STORAGE_SAS_TOKEN)"};
}

// ---- who is asked for a token ----

/// The service that Entra has for a tenant: by a secret, or by what the cluster says of this program.
Found of_application(const web::Until& until) {
  const auto tenant = variable("AZURE_TENANT_ID"), client = variable("AZURE_CLIENT_ID"),
             secret = variable("AZURE_CLIENT_SECRET"), file = variable("AZURE_FEDERATED_TOKEN_FILE");
  if (tenant.empty() || client.empty() || (secret.empty() && file.empty())) return std::nullopt;
  auto proof = "&client_secret=" + form_encoded(secret);
  if (secret.empty()) {
    const auto said = secret_of(file, 64 << 10);
    if (!said) return no_credentials("the file of AZURE_FEDERATED_TOKEN_FILE " + said.error().message);
    proof =
        "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
        "&client_assertion=" +
        form_encoded(*said);
  }
  auto authority = variable("AZURE_AUTHORITY_HOST");
  while (authority.ends_with('/')) authority.pop_back();
  const auto server =
      confidant_at(authority.empty() ? "https://login.microsoftonline.com" : authority, "AZURE_AUTHORITY_HOST");
  if (!server) return server.error();
  const auto who = "the token service " + server->host;
  return token_of(*server,
                  {.method = "POST",
                   .path = "/" + form_encoded(tenant) + "/oauth2/v2.0/token",
                   .body = "grant_type=client_credentials&client_id=" + form_encoded(client) +
                           "&scope=" + form_encoded(std::string(resource) + ".default") + proof},
                  who, until);
}

std::string query_of_identity(const std::string& version) {
  const auto client = variable("AZURE_CLIENT_ID");
  return "?api-version=" + version + "&resource=" + form_encoded(resource) +
         (client.empty() ? "" : "&client_id=" + form_encoded(client));
}

/// App Service, Functions and Container Apps.
Found of_app(const web::Until& until) {
  const auto url = variable("IDENTITY_ENDPOINT"), header = variable("IDENTITY_HEADER");
  if (url.empty() || header.empty()) return std::nullopt;
  const auto [base, path] = split_url(url);
  if (!fit_for_header(path) || !fit_for_header(header))
    return no_credentials("IDENTITY_ENDPOINT or IDENTITY_HEADER has a byte that no header can have");
  const auto server = confidant_at(base, "IDENTITY_ENDPOINT");
  if (!server) return server.error();
  const auto who = "the app's identity at " + server->host;
  return token_of(
      *server,
      {.method = "GET", .path = path + query_of_identity("2019-08-01"), .headers = {"X-IDENTITY-HEADER: " + header}},
      who, until);
}

Result<Login> of_azure_machine(const web::Until& until) {
  auto at = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
  while (at.ends_with('/')) at.pop_back();
  const auto server = server_at(at.empty() ? "http://169.254.169.254" : at, "AZURE_POD_IDENTITY_AUTHORITY_HOST");
  const auto who = "the machine's identity at " + server.host;
  return token_of(server,
                  {.method = "GET",
                   .path = "/metadata/identity/oauth2/token" + query_of_identity("2018-02-01"),
                   .headers = {"Metadata: true"}},
                  who, until);
}

// ---- answers ----

constexpr std::array azure_meanings{
    Meaning{"ContainerNotFound", Fault::misconfigured, "make the container, or correct the URL"},
    Meaning{
        "AuthenticationFailed", Fault::forbidden,
        "check the account's key or the signature, and set this host's wall clock right, by NTP: the service demands "
        "that it is within 15 minutes of its own"},
    Meaning{"InvalidAuthenticationInfo", Fault::forbidden,
            "check the tenant and the account: the token is not valid here"},
    Meaning{"AuthorizationPermissionMismatch", Fault::forbidden,
            "give this identity the role Storage Blob Data Contributor on the container; who only observes needs "
            "Storage Blob Data Reader"},
    Meaning{"AuthorizationFailure", Fault::forbidden,
            "check the account's key, and whether the account's network rules let this host in"},
};

std::string azure_code(const web::Answer& answer) {
  auto out = header_of(answer, "x-ms-error-code");
  return out.empty() ? element(answer.body, "Code") : out;
}

class Azure final : public Dialect {
 public:
  using Dialect::Dialect;

  web::Request get(const std::string& object) const override {
    return {.method = "GET", .path = server_of(options_).folder + object, .headers = {protocol}};
  }

  web::Request put(const std::string& object, std::string body, const Demand& demand) const override {
    return {.method = "PUT",
            .path = server_of(options_).folder + object,
            .body = std::move(body),
            .headers = {protocol, "x-ms-blob-type: BlockBlob", "Content-Type: application/json",
                        demand ? "If-Match: " + *demand : "If-None-Match: *"}};
  }

  Result<Login> log_in(const web::Until& until) const override {
    if (auto found = at_hand(options_)) return *std::move(found);
    if (auto found = of_application(until)) return *std::move(found);
    if (auto found = of_app(until)) return *std::move(found);
    auto found = of_azure_machine(until);
    if (!found && found.error().fault == Fault::unreachable)
      return Error{found.error().fault,
                   "no credentials: set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_TENANT_ID, "
                   "AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or give this machine an identity (" +
                       found.error().message + ")"};
    return found;
  }

  web::Request signed_by(const Login& login, web::Request request) const override {
    if (!login.token.empty()) {
      request.headers.push_back("Authorization: Bearer " + login.token);
    } else if (login.key.empty()) {
      request.path += "?" + login.secret;
    } else {
      request.headers.push_back("x-ms-date: " + http_date(boot_clock().unix_ms() / 1000));  // The service demands it.
      const auto signature = hmac_sha256(web::from_base64(login.secret).value_or(""), text_to_sign(login.key, request));
      request.headers.push_back("Authorization: SharedKey " + login.key + ":" + web::base64(signature));
    }
    return request;
  }

  bool absent(const web::Answer& answer) const override {
    return answer.status == 404 && azure_code(answer) == "BlobNotFound";
  }

  bool refuses_login(const web::Answer& answer) const override {
    return answer.status == 401 || (answer.status == 403 && azure_code(answer) == "AuthenticationFailed");
  }

  bool throttles(const web::Answer& answer) const override {
    return answer.status == 429 || (answer.status == 503 && azure_code(answer) == "ServerBusy");
  }

  Error error_of(const web::Answer& answer, const Redactor& redacted) const override {
    return error_told(site().name, "Azure", azure_code(answer), answer, redacted, azure_meanings);
  }

  std::optional<std::string> version_of(const web::Answer& answer) const override { return etag_of(answer); }
};

}  // namespace

std::unique_ptr<Dialect> azure(const Options& options) { return std::make_unique<Azure>(options); }

std::string http_date(std::int64_t unix_s) {
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_seconds at{std::chrono::seconds(unix_s)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  const auto two = [](auto number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return std::string(days[std::chrono::weekday(day).c_encoding()]) + ", " + two(static_cast<unsigned>(date.day())) +
         " " + months[static_cast<unsigned>(date.month()) - 1] + " " + std::to_string(static_cast<int>(date.year())) +
         " " + two(time.hours().count()) + ":" + two(time.minutes().count()) + ":" + two(time.seconds().count()) +
         " GMT";
}

}  // namespace tenure::object
