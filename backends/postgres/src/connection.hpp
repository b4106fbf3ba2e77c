// SPDX-License-Identifier: Apache-2.0
// One connection to the server, introduced: the tables were looked at, news are listened to, statements are prepared.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/exchange.hpp>

#include "settings.hpp"
#include "sql.hpp"

namespace tenure::postgres {

/// Where news of one election, or of one group, are notified.
std::string channel_of(const std::string& schema, const std::string& table, const std::string& name);

/// What a connection is for.
struct Purpose {
  std::string name;                   ///< Of the election or the group whose news it is told.
  std::vector<Statement> prepared{};  ///< Parsed and planned once.
  /// Writes among them that can find nothing. A new server process fills its caches of a table's catalogue with its
  /// first write, and plans it: some milliseconds, which are not to be a fail-over's.
  /// REQUIRES: they lock no row, take no transaction id and leave nothing in the log.
  std::vector<Statement> rehearsed{};
  std::string settings{};  ///< More of them, for a session of our own: "; set ...".
};

class Connection final : public CallThread::Connection {
 public:
  /// Without a purpose it never looks at the tables, for one who comes to create them.
  Connection(Settings settings, std::optional<Purpose> purpose);
  ~Connection() override;

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override;

  /// One statement in a transaction of its own.
  pqxx::result execute(const Statement& statement);
  /// Several, without values, in one transaction.
  void run(const std::string& statements);

  /// What was notified since forget_news(), in order. What begins with '#' stands for anything: for what came before
  /// the connection, and for more than one would read.
  using News = std::vector<std::string>;
  const News& news() const { return news_; }
  void forget_news() { news_.clear(); }

  enum class Wait { news, ended, broken, impossible };
  /// Sleeps until there is news, or the exchange is over. `none_of_it` first takes out what is none. Impossible:
  /// nothing is ever pushed to this connection.
  Wait await_news(const Exchange& exchange, const std::function<void(News&)>& none_of_it);

  Error corrupt(const std::string& what) const { return {Fault::corrupt, "postgres" + where_ + ": " + what}; }

  /// What was thrown, as an Error; a connection that did not survive it is dropped.
  Error failed(const std::exception& thrown);

  /// Why whatever is written here would be refused, as far as the introduction told.
  const std::optional<Error>& read_only() const { return read_only_; }

  const std::string& channel() const { return channel_; }
  const Settings& settings() const { return settings_; }

 private:
  class Listener;
  bool alive();
  void on_notice(const std::string& notice);
  void miss_news();
  void drop();
  std::string preparations();
  std::string execution(const std::string& name, const std::vector<std::string>& values) const;
  std::optional<Error> introduce(CallThread::Attempt& attempt);
  std::optional<Error> inspect(const Table& table, const pqxx::row& found);

  const Settings settings_;
  const std::optional<Purpose> purpose_;
  std::unique_ptr<pqxx::connection> connection_;
  std::string where_;
  std::string channel_;
  std::optional<Error> read_only_;
  std::unique_ptr<Listener> listener_;  ///< Null behind a pooler. It ends before the connection.
  News news_;
  int missed_{};                                 ///< How often; each time another word.
  std::map<std::string, std::string> prepared_;  ///< Statements and their names.
};

}  // namespace tenure::postgres
