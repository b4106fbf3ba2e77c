// SPDX-License-Identifier: Apache-2.0
// What one provider is told, and what its answers mean.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/kit/security.hpp>
#include <tenure/object.hpp>
#include <tenure/result.hpp>

#include "options.hpp"
#include "web/http.hpp"
#include "web/record.hpp"
#include "web/until.hpp"

namespace tenure::object {

struct Login {
  std::string key{}, secret{}, token{};  ///< An access key's id and secret; the token of a session, perhaps.
  std::string source{};                  ///< Where they were found, for messages.
  std::int64_t expires_ms{};             ///< Since 1970, by the issuer's clock. 0: never.
  friend bool operator==(const Login&, const Login&) = default;
};

/// What no message may show. A server may repeat the parts of a query, as they were sent or decoded.
std::vector<std::string> secrets_of(const Login& login);

/// What a write demands: this version, or, if there is none, that there is no such object.
using Demand = std::optional<std::string>;

/// Whether the bucket keeps what is replaced; whether a rule deletes what nobody replaced.
enum class Setting { versions, expiry };

/// Pure, but for log_in(). `object`: as object_of() names it.
class Dialect {
 public:
  explicit Dialect(const Options& options) : options_(options) {}
  virtual ~Dialect() = default;

  web::Site site() const;
  virtual web::Request get(const std::string& object) const = 0;
  virtual web::Request put(const std::string& object, std::string body, const Demand& demand) const = 0;

  /// Asks whatever there is, in order. An error says what was looked for, or what the one that should know answered.
  virtual Result<Login> log_in(const web::Until& until) const = 0;
  virtual web::Request signed_by(const Login& login, web::Request request) const = 0;

  /// The version that stands there, as the server writes it. An answer without one is none of this provider.
  virtual std::optional<std::string> version_of(const web::Answer& answer) const = 0;

  /// There is no such object, for certain: a proxy may say 404 too.
  virtual bool absent(const web::Answer& answer) const = 0;

  /// The server did not write, as something else stands there, or is being written just now.
  bool refuses(const web::Answer& answer) const {
    return answer.status == 412 || answer.status == 409 || absent(answer);
  }

  /// Other credentials may do better.
  virtual bool refuses_login(const web::Answer& answer) const = 0;

  /// The server asks for fewer requests.
  virtual bool throttles(const web::Answer& answer) const = 0;

  /// What this answer, of no success, means, with a remedy. What is repeated of it is redacted first.
  virtual Error error_of(const web::Answer& answer, const Redactor& redacted) const = 0;

  /// What who may see it asks of the bucket, and what the answer says. Nothing: it is not asked, or does not say.
  virtual std::optional<web::Request> ask_for(Setting) const { return std::nullopt; }
  virtual std::optional<bool> is_on(Setting, const web::Answer&) const { return std::nullopt; }

 protected:
  const Options options_;
};

/// That of the options' service. REQUIRES: they are checked.
std::unique_ptr<Dialect> dialect_of(const Options& options);

/// Amazon's S3, and the servers that speak it.
std::unique_ptr<Dialect> s3(const Options& options);
/// The JSON API of Google Cloud Storage, with generations for versions and bearer tokens for logins.
std::unique_ptr<Dialect> gcs(const Options& options);
/// Azure Blob Storage, with ETags for versions, and the account's key, a shared access signature or bearer tokens for
/// logins.
std::unique_ptr<Dialect> azure(const Options& options);

/// Signs what a service account of Google's says of itself, by its key in PEM: a JSON Web Token, RS256. `now_s`: since
/// 1970.
Result<std::string> assertion(const std::string& email, const std::string& key, const std::string& audience,
                              std::int64_t now_s);

/// As HTTP writes it: "Sat, 28 Nov 2026 04:05:06 GMT". `unix_s`: since 1970.
std::string http_date(std::int64_t unix_s);

/// The value of a header, without blanks round it. Empty: there is none.
std::string header_of(const web::Answer& answer, std::string_view name);

/// The strong ETag of an answer, as the server writes it. Nothing: it has none that a header can have.
std::optional<std::string> etag_of(const web::Answer& answer);

/// What a provider's code says, and what would be right.
struct Meaning {
  std::string_view code;
  Fault fault;
  std::string_view remedy;
};

/// The error of an answer with this code; an answer without a code is none of `provider`.
Error error_told(const std::string& name, const std::string& provider, const std::string& code,
                 const web::Answer& answer, const Redactor& redacted, std::span<const Meaning> meanings);

// ---- for logins ----

Error no_credentials(const std::string& why);

/// As server_at(), of one to which we send a secret: by TLS, unless it is this host or one that only its network has.
Result<Server> confidant_at(const std::string& url, const std::string& what);

/// Of what becomes a header or a path.
bool fit_for_header(std::string_view text);

/// For a form, or a query.
std::string form_encoded(std::string_view text);

/// Empty: there is no such member, or it is no text.
std::string member(const web::Json& json, const char* name);

/// What names the server, and the path with all behind it.
std::pair<std::string, std::string> split_url(const std::string& url);

/// One question on a connection of its own. Nothing of the answer is told, because a secret may be in it.
Result<std::string> fetch(const Server& server, const web::Request& request, const std::string& who,
                          const web::Until& until);
/// The token that is fetched so.
Result<Login> token_of(const Server& server, const web::Request& request, const std::string& who,
                       const web::Until& until);

/// The milliseconds since 1970 of "2026-11-28T01:02:03Z". 0 of any other text.
std::int64_t moment_of(std::string_view text);

/// The text between <NAME> and </NAME>, the first of them. Empty: there is none.
std::string element(std::string_view xml, std::string_view name);

}  // namespace tenure::object
