// SPDX-License-Identifier: Apache-2.0
// Writes requests as Google Cloud Storage reads them, reads its answers, and finds tokens where Google's tools do.
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <utility>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>

#include "dialect.hpp"
#include "web/base64.hpp"
#include "web/record.hpp"

namespace tenure::object {
namespace {

using web::Json;

constexpr const char* scope = "https://www.googleapis.com/auth/devstorage.read_write";

/// As one part of a path.
std::string part(const std::string& object) {
  std::string out;
  for (const char c : object) out += c == '/' ? percent(c) : std::string(1, c);
  return out;
}

/// base64url without padding.
std::string base64url(std::string_view bytes) {
  auto text = web::base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

Result<Login> of_account(const std::string& path, const web::Until& until) {
  const auto text = content_of(path, 64 << 10);
  if (!text) return no_credentials("the file of GOOGLE_APPLICATION_CREDENTIALS " + text.error().message);
  const auto json = web::parsed(*text);
  if (member(json, "type") != "service_account")
    return no_credentials("the file of GOOGLE_APPLICATION_CREDENTIALS is not that of a service account");
  const auto email = member(json, "client_email"), uri = member(json, "token_uri");
  const auto proof = assertion(email, member(json, "private_key"), uri, boot_clock().unix_ms() / 1000);
  if (!proof) return proof.error();
  const auto [base, path_there] = split_url(uri);
  const auto server = confidant_at(base, "token_uri");
  if (!server) return server.error();
  const auto who = "the token service " + server->host;
  return token_of(*server,
                  {.method = "POST",
                   .path = path_there,
                   .body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + *proof},
                  who, until);
}

Result<Login> of_machine(const web::Until& until) {
  const auto host = variable("GCE_METADATA_HOST");
  const auto server = server_at("http://" + (host.empty() ? "metadata.google.internal" : host), "GCE_METADATA_HOST");
  const std::string who = "the machine's metadata at " + server.host;
  return token_of(server,
                  {.method = "GET",
                   .path = "/computeMetadata/v1/instance/service-accounts/default/token",
                   .headers = {"Metadata-Flavor: Google"}},
                  who, until);
}

/// It may delete what nobody replaced.
bool expires(const Json& rule) {
  if (!rule.is_object() || member(rule.value("action", Json()), "type") != "Delete") return false;
  const auto condition = rule.value("condition", Json::object());
  if (!condition.is_object()) return true;
  if (const auto live = condition.find("isLive"); live != condition.end() && *live == false) return false;
  return !condition.contains("daysSinceNoncurrentTime") && !condition.contains("numNewerVersions") &&
         !condition.contains("noncurrentTimeBefore");
}

class Gcs final : public Dialect {
 public:
  using Dialect::Dialect;

  web::Request get(const std::string& object) const override {
    return {.method = "GET", .path = "/storage/v1/b/" + options_.bucket + "/o/" + part(object) + "?alt=media"};
  }

  web::Request put(const std::string& object, std::string body, const Demand& demand) const override {
    return {.method = "POST",
            .path = "/upload/storage/v1/b/" + options_.bucket + "/o?uploadType=media&name=" + part(object) +
                    "&ifGenerationMatch=" + demand.value_or("0"),
            .body = std::move(body),
            .headers = {"Content-Type: application/json"}};
  }

  Result<Login> log_in(const web::Until& until) const override {
    if (options_.credentials) {
      const auto found = credentials_by(options_.credentials, Redactor({}));
      if (found.password.empty() || !fit_for_header(found.password))
        return no_credentials("credentials() returned no token that a header can have");
      return Login{.token = found.password, .source = "what credentials() returned"};
    }
    if (const auto file = variable("GOOGLE_APPLICATION_CREDENTIALS"); !file.empty()) return of_account(file, until);
    auto found = of_machine(until);
    if (!found && found.error().fault == Fault::unreachable)
      return Error{found.error().fault,
                   "no credentials: set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or run on a "
                   "machine of Google's (" +
                       found.error().message + ")"};
    return found;
  }

  web::Request signed_by(const Login& login, web::Request request) const override {
    request.headers.push_back("Authorization: Bearer " + login.token);
    return request;
  }

  std::optional<std::string> version_of(const web::Answer& answer) const override {
    auto out = header_of(answer, "x-goog-generation");
    if (out.empty()) out = member(web::parsed(answer.body), "generation");
    const auto generation = number<std::uint64_t>(out);
    return generation && *generation > 0 ? std::optional(std::move(out)) : std::nullopt;
  }

  /// Another server than Google's says less.
  bool absent(const web::Answer& answer) const override {
    return answer.status == 404 && (answer.body.starts_with("No such object: ") ||
                                    (!options_.endpoint.empty() && answer.body == "Not Found\n"));
  }

  Error error_of(const web::Answer& answer, const Redactor& redacted) const override {
    const auto json = web::parsed(answer.body);
    const auto error = json.is_object() ? json.find("error") : json.end();
    auto message = error == json.end() ? std::string() : member(*error, "message");
    if (message.empty()) message = answer.body;
    const auto said =
        site().name + ": HTTP status " + std::to_string(answer.status) + ": " + printable(redacted(message), 300);
    switch (answer.status) {
      case 401: return {Fault::forbidden, said + " (the token is not valid)"};
      case 403:
        return {Fault::forbidden,
                said +
                    " (allow storage.objects.get, .list, .create and .delete on the bucket: to replace an object is to "
                    "delete it, and without .list a missing one is forbidden too)"};
      case 404: return {Fault::misconfigured, said + " (make the bucket, or correct the URL)"};
      default: return {Fault::unreachable, said};
    }
  }

  std::optional<web::Request> ask_for(Setting setting) const override {
    return web::Request{.method = "GET",
                        .path = "/storage/v1/b/" + options_.bucket +
                                (setting == Setting::versions ? "?fields=versioning" : "?fields=lifecycle")};
  }

  std::optional<bool> is_on(Setting setting, const web::Answer& answer) const override {
    const auto json = web::parsed(answer.body);
    if (answer.status != 200 || !json.is_object()) return std::nullopt;
    const auto found = json.value(setting == Setting::versions ? "versioning" : "lifecycle", Json());
    if (!found.is_object()) return false;
    if (setting == Setting::versions) return found.value("enabled", Json()) == true;
    const auto rules = found.value("rule", Json::array());
    return rules.is_array() && std::any_of(rules.begin(), rules.end(), expires);
  }

  bool refuses_login(const web::Answer& answer) const override { return answer.status == 401; }
  bool throttles(const web::Answer& answer) const override { return answer.status == 429 || answer.status == 503; }
};

}  // namespace

std::unique_ptr<Dialect> gcs(const Options& options) { return std::make_unique<Gcs>(options); }

Result<std::string> assertion(const std::string& email, const std::string& key, const std::string& audience,
                              std::int64_t now_s) {
  const auto claims = Json{{"iss", email}, {"scope", scope}, {"aud", audience}, {"iat", now_s}, {"exp", now_s + 3600}};
  const auto said = base64url(R"({"alg":"RS256","typ":"JWT"})") + "." +
                    base64url(claims.dump(-1, ' ', true, Json::error_handler_t::replace));
  const auto memory = owned<BIO_free>(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  // A passphrase is asked for nowhere.
  const auto none = [](char*, int, int, void*) { return 0; };
  const auto pair =
      owned<EVP_PKEY_free>(memory ? PEM_read_bio_PrivateKey(memory.get(), nullptr, none, nullptr) : nullptr);
  const auto context = owned<EVP_MD_CTX_free>(EVP_MD_CTX_new());
  std::size_t size = 0;
  std::string signature;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(said.data());
  if (!pair || !context || EVP_PKEY_get_base_id(pair.get()) != EVP_PKEY_RSA ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, pair.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, bytes, said.size()) != 1)
    return no_credentials("private_key of the service account is no RSA key in PEM");
  signature.resize(size);
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes, said.size()) != 1)
    return no_credentials("private_key of the service account signs nothing");
  signature.resize(size);
  return said + "." + base64url(signature);
}

}  // namespace tenure::object
