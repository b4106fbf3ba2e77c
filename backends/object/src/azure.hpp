// SPDX-License-Identifier: Apache-2.0
// The dialect of Azure Blob Storage: ETags for versions, and the account's key, a shared access signature or bearer
// tokens for logins.
#pragma once
#include "dialect.hpp"

namespace tenure::object {

class Azure final : public Dialect {
 public:
  explicit Azure(const Options& options) : options_(options) {}

  web::Site site() const override;
  web::Request get(const std::string& object) const override;
  web::Request put(const std::string& object, std::string body, const Demand& demand) const override;
  Result<Login> log_in(const web::Until& until) const override;
  web::Request signed_by(const Login& login, web::Request request) const override;
  std::optional<std::string> version_of(const web::Answer& answer) const override { return etag_of(answer); }
  bool absent(const web::Answer& answer) const override;
  bool refuses_login(const web::Answer& answer) const override;
  bool throttles(const web::Answer& answer) const override;
  Error error_of(const web::Answer& answer, const Redactor& redacted) const override;

 private:
  const Options options_;
};

/// As HTTP writes it: "Sat, 28 Nov 2026 04:05:06 GMT". `unix_s`: since 1970.
std::string http_date(std::int64_t unix_s);

}  // namespace tenure::object
