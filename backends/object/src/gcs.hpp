// SPDX-License-Identifier: Apache-2.0
// The dialect of Google Cloud Storage: its JSON API, with generations for versions and bearer tokens for logins.
#pragma once
#include "dialect.hpp"

namespace tenure::object {

class Gcs final : public Dialect {
 public:
  explicit Gcs(const Options& options) : options_(options) {}

  web::Site site() const override;
  web::Request get(const std::string& object) const override;
  web::Request put(const std::string& object, std::string body, const Demand& demand) const override;
  Result<Login> log_in(const web::Until& until) const override;
  web::Request signed_by(const Login& login, web::Request request) const override;
  std::optional<std::string> version_of(const web::Answer& answer) const override;
  bool absent(const web::Answer& answer) const override;
  bool refuses_login(const web::Answer& answer) const override { return answer.status == 401; }
  bool throttles(const web::Answer& answer) const override { return answer.status == 429 || answer.status == 503; }
  Error error_of(const web::Answer& answer, const Redactor& redacted) const override;
  std::optional<web::Request> ask_for(Setting setting) const override;
  std::optional<bool> is_on(Setting setting, const web::Answer& answer) const override;

 private:
  const Options options_;
};

/// Signs what a service account says of itself, by its key in PEM: a JSON Web Token, RS256. `now_s`: since 1970.
Result<std::string> assertion(const std::string& email, const std::string& key, const std::string& audience,
                              std::int64_t now_s);

}  // namespace tenure::object
