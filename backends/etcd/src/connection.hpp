// SPDX-License-Identifier: Apache-2.0
// One connection to a member: found, logged in, and left when another one may do better.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/kit/try_order.hpp>

#include "gateway.hpp"
#include "options.hpp"
#include "web/until.hpp"

namespace tenure::etcd {

using web::Until;

class Connection final : public CallThread::Connection {
 public:
  explicit Connection(const Options& options);

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override;

  /// Asks once. It asks again only if the member refused to look at the question before another login.
  Result<Json> ask(const char* path, const Json& question, const Until& until);

  /// The same for what is no JSON.
  Result<std::string> text(const char* path, const Until& until);

  bool logged_in() const { return !token_.empty(); }

  /// What is known of the watched key, by this or an earlier connection.
  struct News {
    int watches{};                       ///< How often it began or ceased to watch, or saw that the key is gone.
    std::optional<std::string> value{};  ///< That the key got last, since the last of these.
    bool ceased{};                       ///< The last of these was that the watch broke.
    friend bool operator==(const News&, const News&) = default;
  };
  /// Sleeps until there are other news than `known`, or the call is ended. Then it returns the same ones. An error says
  /// why it cannot begin to watch.
  Result<News> await_news(const std::string& key, const News& known, CallThread::Socket& socket);

 private:
  std::optional<Error> connect_to(const Address& member, CallThread::Attempt& attempt);
  std::optional<Error> check_member(const Json& status);
  std::optional<Error> check_cluster(const Json& answer);
  void ask_credentials();
  web::Request login() const;
  std::optional<Error> log_in();
  std::optional<Error> take_token(const Answer& answer);
  std::optional<Error> heard(const std::string& line);
  Result<Answer> answer_to(const char* path, const std::string& body, const Until& until);
  Result<Json> read(const Answer& answer) const;
  Redactor redacted() const;
  Error at_member(Error error) const;
  void drop();
  void leave();

  const Options options_;
  TryOrder<Address> order_;
  Address member_;    ///< The one that is asked.
  std::string name_;  ///< "etcd 127.0.0.1:2379"
  std::unique_ptr<web::Http> http_;
  Credentials login_;
  std::string token_;
  bool answered_{};  ///< This member has.
  bool ended_{};     ///< The attempt tries no further member.
  bool asked_to_watch_{}, watching_{};
  News news_;
  std::string cluster_;  ///< Its id. Empty: not known yet.
  Address told_by_;      ///< The member that named it.
};

}  // namespace tenure::etcd
