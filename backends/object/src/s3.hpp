// SPDX-License-Identifier: Apache-2.0
// The dialect of Amazon's S3, and of the servers that speak it.
#pragma once
#include "dialect.hpp"

namespace tenure::object {

class S3 final : public Dialect {
 public:
  explicit S3(const Options& options) : options_(options) {}

  web::Site site() const override;
  web::Request get(const std::string& object) const override;
  web::Request put(const std::string& object, std::string body, const Demand& demand) const override;
  Result<Login> log_in(const web::Until& until) const override { return find_login(options_, until); }
  web::Request signed_by(const Login& login, web::Request request) const override;
  std::optional<std::string> version_of(const web::Answer& answer) const override { return etag_of(answer); }
  bool absent(const web::Answer& answer) const override;
  bool refuses_login(const web::Answer& answer) const override;
  bool throttles(const web::Answer& answer) const override;
  Error error_of(const web::Answer& answer, const Redactor& redacted) const override;
  std::optional<web::Request> ask_for(Setting setting) const override;
  std::optional<bool> is_on(Setting setting, const web::Answer& answer) const override;

 private:
  const Options options_;
};

}  // namespace tenure::object
