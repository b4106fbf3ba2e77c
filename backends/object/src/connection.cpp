// SPDX-License-Identifier: Apache-2.0
// Finds credentials, sends a request, and backs off where the server asks for that.
#include "connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <tenure/kit/jitter.hpp>

namespace tenure::object {
namespace {

using std::chrono::milliseconds;

/// So long before they expire credentials are found anew. Amazon gives out new ones earlier.
constexpr auto renewed_before = std::chrono::minutes(5);

/// A lease of the shortest preset outlives some pauses.
constexpr Clock::Duration first_pause = milliseconds(250), longest_pause = std::chrono::seconds(2);

}  // namespace

std::optional<Error> Connection::connect(CallThread::Attempt& attempt) {
  named_ = attempt.step(site_.name, "a request");
  return std::nullopt;
}

Error Connection::error_of(const web::Answer& answer) const {
  auto error = dialect_->error_of(answer, Redactor({login_.secret, login_.token}));
  if (error.fault == Fault::forbidden) error.message += "; the credentials are those of " + login_.source;
  return error;
}

std::optional<Error> Connection::log_in(const Until& until, bool anew) {
  const auto now = boot_clock().unix_ms();  // of no election's decision
  const bool have = !anew && !login_.source.empty(), endless = login_.expires_ms == 0;
  if (have && (endless || now < login_.expires_ms - milliseconds(renewed_before).count())) return std::nullopt;
  auto found = dialect_->log_in(until);
  if (!found && have && now < login_.expires_ms) return std::nullopt;
  if (!found) return std::move(found).error();
  login_ = *std::move(found);
  return std::nullopt;
}

/// On a new connection libcurl sends once. On one that stands it would send again if that broke, by a new one; but it
/// may make none.
Result<web::Answer> Connection::send(const web::Request& request, const Until& until) {
  if (until.over()) return Error{Fault::timed_out, site_.name + ": the limit passed before it was asked"};
  const auto left = std::max<Clock::Duration>(until.by - boot_clock().now(), milliseconds(1));
  const auto signed_request = dialect_->signed_by(login_, request);
  const bool stands = http_ && http_->idle();
  if (!stands) http_ = std::make_unique<web::Http>(site_);
  auto answer =
      stands ? http_->ask(signed_request, left) : http_->connect(signed_request, left, [](int) { return true; });
  if (!answer) http_.reset();
  return answer;
}

void Connection::heed(const web::Answer& answer) {
  if (!dialect_->throttles(answer)) {
    slowed_ = 0;
    return;
  }
  const auto pause = std::min(first_pause * (1 << std::min(slowed_++, 10)), longest_pause);
  not_before_ = boot_clock().now() + jittered(pause);
}

Result<web::Answer> Connection::ask(const web::Request& request, const Until& until) {
  if (slowed_ > 0 && boot_clock().now() < not_before_)
    return Error{Fault::unreachable, site_.name + ": not asked, because the server told us to slow down just now"};
  if (auto error = log_in(until, false)) return *error;
  for (bool first = true;; first = false) {
    auto answer = send(request, until);
    if (!answer) return answer;
    heed(*answer);
    const auto refused = login_;
    if (!dialect_->refuses_login(*answer) || !first || log_in(until, true) || login_ == refused) return answer;
  }
}

Result<Connection::Found> Connection::get(const std::string& object, const Until& until) {
  auto answer = ask(dialect_->get(object), until);
  if (!answer) return std::move(answer).error();
  if (dialect_->absent(*answer)) return Found{};
  if (answer->status != 200) return error_of(*answer);
  auto version = dialect_->version_of(*answer);
  if (!version)
    return Error{Fault::unreachable, site_.name + ": its answer has no version, or one that a proxy changed"};
  return Found{std::move(version), std::move(answer->body)};
}

Result<std::optional<std::string>> Connection::put(const std::string& object, const std::string& body,
                                                   const Demand& demand, const Until& until) {
  const auto answer = ask(dialect_->put(object, body, demand), until);
  if (!answer) return answer.error();
  if (dialect_->refuses(*answer)) return std::optional<std::string>();
  if (answer->status != 200 && answer->status != 201) return error_of(*answer);
  auto version = dialect_->version_of(*answer);
  if (!version) return Error{Fault::unreachable, site_.name + ": it answered a write without a version"};
  return version;
}

}  // namespace tenure::object
