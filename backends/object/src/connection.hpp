// SPDX-License-Identifier: Apache-2.0
// Requests to the bucket, one after the other: signed, bounded, and none of them sent twice.
#pragma once
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/jitter.hpp>

#include "dialect.hpp"
#include "web/until.hpp"

namespace tenure::object {

using web::Until;

/// A server closes what is idle for some seconds, and a renewal may come later. So a connection is made where it is
/// needed, by the request itself: nothing is asked before it, and a renewal is one request.
class Connection final : public CallThread::Connection {
 public:
  explicit Connection(const Options& options) : dialect_(dialect_of(options)), site_(dialect_->site()) {}

  std::optional<Error> connect(CallThread::Attempt& attempt) override {
    named_ = attempt.step(site_.name, "a request");
    return std::nullopt;
  }

  bool stands() override { return named_; }

  struct Found {
    std::optional<std::string> version{};  ///< Nothing: there is no such object.
    std::string body{};
  };
  Result<Found> get(const std::string& object, const Until& until) {
    auto answer = ask(dialect_->get(object), until);
    if (!answer) return std::move(answer).error();
    if (dialect_->absent(*answer)) return Found{};
    if (answer->status != 200) return error_of(*answer);
    auto version = dialect_->version_of(*answer);
    if (!version)
      return Error{Fault::unreachable, site_.name + ": its answer has no version, or one that a proxy changed"};
    return Found{std::move(version), std::move(answer->body)};
  }

  /// The new version; or nothing, if the server says that something else stands there. That may be untrue.
  Result<std::optional<std::string>> put(const std::string& object, const std::string& body, const Demand& demand,
                                         const Until& until) {
    const auto answer = ask(dialect_->put(object, body, demand), until);
    if (!answer) return answer.error();
    if (dialect_->refuses(*answer)) {
      refusal_ = error_of(*answer).message;
      return std::optional<std::string>();
    }
    if (answer->status != 200 && answer->status != 201) return error_of(*answer);
    auto version = dialect_->version_of(*answer);
    if (!version) return Error{Fault::unreachable, site_.name + ": it answered a write without a version"};
    return version;
  }

  /// Of the write that was refused last, in the server's words.
  const std::string& refusal() const { return refusal_; }

  /// Whatever it answers. An error says that there is no answer. It sends again only what the server refused to look
  /// at: once after a pause that it asked for, as a release that is lost costs the others a term; and with other
  /// credentials.
  Result<web::Answer> ask(const web::Request& request, const Until& until) {
    if (!rest(until))
      return Error{Fault::unreachable, site_.name + ": not asked, because the server told us to slow down just now"};
    auto answer = ask_once(request, until);
    if (answer && dialect_->throttles(*answer) && rest(until)) return ask_once(request, until);
    return answer;
  }

  const Dialect& dialect() const { return *dialect_; }
  Error error_of(const web::Answer& answer) const {
    auto error = dialect_->error_of(answer, Redactor(secrets_of(login_)));
    if (error.fault == Fault::forbidden) error.message += "; the credentials are those of " + login_.source;
    return error;
  }

  const std::string& source() const { return login_.source; }  ///< Of the credentials that were used last.

 private:
  /// Sleeps until the server may be asked. False: that is not before the limit.
  bool rest(const Until& until) const {
    if (slowed_ == 0) return true;
    return not_before_ < until.by && sleep_for(not_before_ - boot_clock().now(), until.stop);
  }

  Result<web::Answer> ask_once(const web::Request& request, const Until& until) {
    if (auto error = log_in(until, false)) return *error;
    for (bool first = true;; first = false) {
      auto answer = send(request, until);
      if (!answer) return answer;
      heed(*answer);
      const auto refused = login_;
      if (!dialect_->refuses_login(*answer) || !first || log_in(until, true) || login_ == refused) return answer;
    }
  }

  std::optional<Error> log_in(const Until& until, bool anew) {
    const auto now = boot_clock().unix_ms();  // of no election's decision
    const bool have = !anew && !login_.source.empty(), endless = login_.expires_ms == 0;
    if (have && (endless || now < login_.expires_ms - std::chrono::milliseconds(renewed_before).count()))
      return std::nullopt;
    const bool valid = have && now < login_.expires_ms;  // Then who gives new ones may hang, and costs no renewal.
    if (valid && boot_clock().now() < renewed_not_before_) return std::nullopt;
    auto limit = until;
    if (valid) limit.by -= (until.by - boot_clock().now()) / 2;
    auto found = dialect_->log_in(limit);
    if (!found && valid) {
      renewed_not_before_ = boot_clock().now() + std::chrono::seconds(10);
      return std::nullopt;
    }
    if (!found) return std::move(found).error();
    login_ = *std::move(found);
    return std::nullopt;
  }

  /// On a new connection libcurl sends once. On one that stands it would send again if that broke, by a new one; but it
  /// may make none.
  Result<web::Answer> send(const web::Request& request, const Until& until) {
    if (until.over()) return Error{Fault::timed_out, site_.name + ": the limit passed before it was asked"};
    const auto left = std::max<Clock::Duration>(until.by - boot_clock().now(), std::chrono::milliseconds(1));
    const auto signed_request = dialect_->signed_by(login_, request);
    const bool stands = http_ && http_->idle();
    if (!stands) http_ = std::make_unique<web::Http>(site_);
    auto answer =
        stands ? http_->ask(signed_request, left) : http_->connect(signed_request, left, [](int) { return true; });
    // Another server of this name may do better. One that asks for fewer requests is not given a handshake more.
    if (!answer || (answer->status >= 500 && !dialect_->throttles(*answer))) http_.reset();
    return answer;
  }

  void heed(const web::Answer& answer) {
    if (!dialect_->throttles(answer)) {
      slowed_ = 0;
      return;
    }
    const auto pause = std::min(first_pause * (1 << std::min(slowed_++, 10)), longest_pause);
    not_before_ = boot_clock().now() + jittered(pause);
  }

  /// So long before they expire credentials are found anew. Amazon gives out new ones earlier.
  static constexpr auto renewed_before = std::chrono::minutes(5);
  /// A lease of the shortest preset outlives some pauses.
  static constexpr Clock::Duration first_pause = std::chrono::milliseconds(250),
                                   longest_pause = std::chrono::seconds(2);

  const std::unique_ptr<Dialect> dialect_;
  const web::Site site_;
  std::unique_ptr<web::Http> http_;
  Login login_;
  bool named_{};  ///< CallThread knows how messages call the server.
  int slowed_{};  ///< How often in a row the server asked for fewer requests.
  Clock::Time not_before_{};
  Clock::Time renewed_not_before_{};  ///< Credentials that still hold.
  std::string refusal_;
};

}  // namespace tenure::object
