// SPDX-License-Identifier: Apache-2.0
// What is said to S3, and what its answers mean. Pure.
#pragma once
#include <optional>
#include <string>

#include <tenure/kit/security.hpp>

#include "credentials.hpp"
#include "options.hpp"
#include "web/http.hpp"

namespace tenure::object {

/// What a write demands: this version, or, if there is none, that there is no such object.
using Demand = std::optional<std::string>;

/// "GET" or "PUT", without a signature. `object`: as object_of() names it; or a query, of the bucket.
web::Request get(const Options& options, const std::string& object);
web::Request put(const Options& options, const std::string& object, std::string body, const Demand& demand);

/// Signed by libcurl when it is sent.
web::Request signed_by(const Login& login, const Options& options, web::Request request);

web::Site site_of(const Options& options);

/// The value of a header, without blanks round it. Empty: there is none.
std::string header_of(const web::Answer& answer, std::string_view name);

/// The version that stands there, as the server writes it: with quotes, or bare. An answer without one is none of S3.
std::optional<std::string> version_of(const web::Answer& answer);

/// There is no such object, for certain: a proxy may say 404 too.
bool absent(const web::Answer& answer);

/// The server did not write, as something else stands there, or is being written just now.
bool refuses(const web::Answer& answer);

/// Other credentials may do better.
bool refuses_login(const web::Answer& answer);

/// The server asks for fewer requests.
bool throttles(const web::Answer& answer);

/// What this answer, of no success, means, with a remedy. What is repeated of it is redacted first.
Error error_of(const web::Answer& answer, const Options& options, const Redactor& redacted);

}  // namespace tenure::object
