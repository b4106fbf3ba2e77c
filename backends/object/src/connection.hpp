// SPDX-License-Identifier: Apache-2.0
// Requests to the bucket, one after the other: signed, bounded, and none of them sent twice.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <tenure/kit/call_thread.hpp>

#include "credentials.hpp"
#include "dialect.hpp"
#include "web/until.hpp"

namespace tenure::object {

using web::Until;

/// A server closes what is idle for some seconds, and a renewal may come later. So a connection is made where it is
/// needed, by the request itself: nothing is asked before it, and a renewal is one request.
class Connection final : public CallThread::Connection {
 public:
  explicit Connection(const Options& options) : dialect_(dialect_of(options)), site_(dialect_->site()) {}

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override { return named_; }

  struct Found {
    std::optional<std::string> version{};  ///< Nothing: there is no such object.
    std::string body{};
  };
  Result<Found> get(const std::string& object, const Until& until);

  /// The new version; or nothing, if the server says that something else stands there. That may be untrue.
  Result<std::optional<std::string>> put(const std::string& object, const std::string& body, const Demand& demand,
                                         const Until& until);

  /// Whatever it answers. An error says that there is no answer. It sends again only what the server refused to look at
  /// before other credentials were found.
  Result<web::Answer> ask(const web::Request& request, const Until& until);

  const Dialect& dialect() const { return *dialect_; }
  Error error_of(const web::Answer& answer) const;
  const std::string& source() const { return login_.source; }  ///< Of the credentials that were used last.

 private:
  std::optional<Error> log_in(const Until& until, bool anew);
  Result<web::Answer> send(const web::Request& request, const Until& until);
  void heed(const web::Answer& answer);

  const std::unique_ptr<Dialect> dialect_;
  const web::Site site_;
  std::unique_ptr<web::Http> http_;
  Login login_;
  bool named_{};  ///< CallThread knows how messages call the server.
  int slowed_{};  ///< How often in a row the server asked for fewer requests.
  Clock::Time not_before_{};
};

}  // namespace tenure::object
