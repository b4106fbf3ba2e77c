// SPDX-License-Identifier: Apache-2.0
// One connection to the server, introduced: the table was looked at, news are listened to, statements are prepared.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/error.hpp>
#include <tenure/kit/call_thread.hpp>

#include "settings.hpp"
#include "statements.hpp"

namespace tenure::postgres {

/// The channel on which news of one election are notified.
std::string channel_of(const std::string& schema, const std::string& table, const std::string& election);

class Session final : public CallThread::Connection {
 public:
  /// Without an election it never looks at the table: create_schema() comes to create it.
  Session(Settings settings, std::optional<std::string> election);
  ~Session() override;

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override;

  /// Runs one statement in a transaction of its own.
  pqxx::result execute(const Statement& statement);
  /// Runs several statements without values in one transaction.
  void run(const std::string& statements);

  /// From here on only what comes later is news. At first all that came before the connection counts as news.
  void forget_news() { news_ = {}; }

  struct News {
    bool any{};
    std::optional<Version> released{};  ///< The version of the last release, if nothing else came after it.
  };
  enum class Wait { news, ended, broken, impossible };
  /// Sleeps until there is news other than the release of `seen`, or until the call is ended. Returns Impossible if
  /// nothing is ever pushed to this session.
  Wait await_news(CallThread::Socket& socket, const std::optional<Version>& seen);
  const News& news() const { return news_; }

  Error corrupt(const std::string& what) const { return {Fault::corrupt, "postgres" + where_ + ": " + what}; }

  /// Returns what was thrown as an Error, and drops a connection that did not survive it.
  Error failed(const std::exception& thrown);

  /// Says why a write would be refused here, as far as the first questions told.
  const std::optional<Error>& read_only() const { return read_only_; }

  const std::string& channel() const { return channel_; }
  const Settings& settings() const { return settings_; }

 private:
  class Listener;
  bool alive();
  void on_notice(std::string_view notice);
  void drop();
  std::string preparations(bool may_write);
  std::string execution(const std::string& name, const std::vector<std::string>& values) const;
  std::optional<Error> introduce(CallThread::Attempt& attempt);
  std::optional<Error> unsuitable(const pqxx::row& table) const;

  const Settings settings_;
  const std::optional<std::string> election_;
  std::unique_ptr<pqxx::connection> connection_;
  std::string where_;
  std::string channel_;
  std::optional<Error> read_only_;
  std::unique_ptr<Listener> listener_;  ///< Null behind a pooler. It ends before the connection.
  News news_;
  std::map<std::string, std::string> prepared_;  ///< Statements and their names.
};

}  // namespace tenure::postgres
