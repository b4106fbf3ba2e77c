// SPDX-License-Identifier: Apache-2.0
// One connection to the server, introduced: the tables were looked at, and statements are prepared.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/exchange.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/log.hpp>

#include "settings.hpp"
#include "sql.hpp"

namespace tenure::postgres {

/// Where news of one election, or of one group, are notified.
std::string channel_of(const std::string& schema, const std::string& table, const std::string& name);

/// What the connections of one store share: what deserves a line in the log, each once, and that they are to go
/// elsewhere. A connection notes it on its thread, which may outlive the store; whoever calls the store then tells it.
class Notes final {
 public:
  /// `what`: an "election" or a "group", of that name.
  Notes(Log log, std::string what, std::string name)
      : log_(std::move(log)), what_(std::move(what)), name_(std::move(name)) {}

  void add(Level level, const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (noted_.size() < 100 && noted_.insert(message).second) untold_.emplace_back(level, message);
  }

  /// A server was left, because another one may do. The other connections are not to stay there alone.
  void leave() { ++left_; }
  int left() const { return left_; }

  void tell() {
    std::vector<std::pair<Level, std::string>> lines;
    {
      const std::lock_guard lock(mutex_);
      lines.swap(untold_);
    }
    for (const auto& [level, message] : lines)
      tenure::tell(log_, level, message, {{what_, name_}, {"store", "postgres"}});
  }

 private:
  const Log log_;
  const std::string what_, name_;
  std::atomic<int> left_{0};
  std::mutex mutex_;
  std::set<std::string> noted_;
  std::vector<std::pair<Level, std::string>> untold_;
};

/// What a connection is for.
struct Purpose {
  std::string name;                   ///< Of the election or the group whose news it is told.
  std::vector<Statement> prepared{};  ///< Parsed and planned once.
  /// Writes among them that can find nothing. A new server process fills its caches of a table's catalogue with its
  /// first write, and plans it: some milliseconds, which are not to be a fail-over's.
  /// REQUIRES: they lock no row, take no transaction id and leave nothing in the log.
  std::vector<Statement> rehearsed{};
  std::vector<std::string> settings{};  ///< More of them, for a session of our own: "set ...".
  std::shared_ptr<Notes> notes{};       ///< Where it tells what is worth a line of the log.
};

class Connection final : public CallThread::Connection {
 public:
  Connection(Settings settings, Purpose purpose);
  ~Connection() override;

  std::optional<Error> connect(CallThread::Attempt& attempt) override;
  bool stands() override;

  /// One statement in a transaction of its own. Throws NoAnswer for an answer of another shape. Where the server
  /// refuses only what it notifies, the rest is done.
  pqxx::result execute(const Statement& statement);
  /// Several, without values, in one transaction. Returns what the last one answers.
  pqxx::result run(const std::string& statements);

  /// Asks to be told of news from now on, unless a pooler stands between or the server refuses it.
  void listen();

  /// What was notified since forget_news(), in order. What begins with '#' stands for anything: for what came before
  /// listen(), and for more than one would read.
  using News = std::vector<std::string>;
  const News& news() const { return news_; }
  void forget_news() { news_.clear(); }

  enum class Wait { news, ended, broken, deaf, impossible };
  /// Sleeps until there is news, or the exchange is over. `none_of_it` first takes out what is none. Deaf: listen()
  /// must come first. Impossible: nothing is ever pushed to this connection.
  Wait await_news(const Exchange& exchange, const std::function<void(News&)>& none_of_it);

  Error corrupt(const std::string& what) const { return {Fault::corrupt, "postgres" + where_ + ": " + what}; }

  /// What was thrown, as an Error; a connection that did not survive it is dropped.
  Error failed(const std::exception& thrown);

  /// Of what was read, whether the session may only read by now. Where conninfo wants a server that writes, this one is
  /// then left, by what it throws: who only reads would never be refused.
  void must_write(bool only_reads) const;

  /// Why whatever is written here would be refused, as far as the introduction told.
  const std::optional<Error>& read_only() const { return read_only_; }

  /// Tells one connection from those before it. 0: a pooler stands between, so each call may meet another session.
  std::uint64_t number() const { return own_ ? number_ : 0; }

  const std::string& channel() const { return channel_; }
  const Settings& settings() const { return settings_; }
  const std::vector<std::string>& places() const { return places_; }  ///< The tables, quoted, with their schemas.
  Notes* notes() const { return purpose_.notes.get(); }

 private:
  class Listener;
  bool alive();
  void remember_host();
  void leave_host();
  std::vector<std::string> addresses() const;
  pqxx::result ask(const Statement& statement);
  pqxx::result ask(const Statement& statement, bool notifies);
  std::string here(std::string_view text, bool notifies) const;
  void note(Level level, const std::string& message) const;
  void note_silence(const std::string& why) const;
  void note_tables(const pqxx::result& found);
  void on_notice(const std::string& notice);
  void miss_news();
  void drop();
  std::vector<std::string> preparations() const;
  std::vector<std::string> rehearsals() const;
  std::string executed(const std::vector<std::string>& statements) const;
  std::string introducing() const;
  std::string execution(const std::string& name, const std::vector<std::string>& values) const;
  std::string with_values(const Statement& statement, bool notifies) const;
  std::optional<Error> introduce(CallThread::Attempt& attempt);
  pqxx::result look_and_prepare(CallThread::Attempt& attempt);
  static bool stands_elsewhere_alone(const pqxx::result& found);
  bool may_make_tables(const pqxx::result& found) const;
  std::optional<Error> made_beside_another(const pqxx::result& found) const;
  std::optional<pqxx::result> prepare_at_once(CallThread::Attempt& attempt);
  pqxx::result ask_what_stands(const std::string& statements, CallThread::Attempt& attempt);
  std::optional<Error> inspect(const Table& table, const pqxx::row& found);
  Error refused(const Table& table, const pqxx::row& found, const std::string& what) const;
  std::string squatting(const std::string& open_to_others, const pqxx::row& found) const;

  Settings settings_;
  std::size_t host_{};   ///< Of several the one that answered last,
  std::string address_;  ///< and where, if it has a name.
  const Purpose purpose_;
  const std::map<std::string, std::string> names_;  ///< Of statements that may be prepared.
  std::unique_ptr<pqxx::connection> connection_;
  std::string where_;
  std::vector<std::string> places_;  ///< The tables, as they were found first. A session's search_path may change.
  std::string channel_;
  std::optional<Error> read_only_;
  bool at_once_{true};  ///< The server was not seen to refuse that.
  bool prepared_{};
  bool own_{};         ///< The session is our own, and not a pooler's.
  bool notifies_{};    ///< The server was not seen to refuse that,
  bool may_listen_{};  ///< nor that.
  std::uint64_t number_{};
  std::unique_ptr<Listener> listener_;  ///< It ends before the connection.
  News news_;
  int left_{};    ///< As Notes::left() was when we connected.
  int missed_{};  ///< How often; each time another word.
};

}  // namespace tenure::postgres
