// SPDX-License-Identifier: Apache-2.0
// The SQL statements of one group, and how their answers are read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/result.hpp>

#include "sql.hpp"

namespace tenure::postgres {

/// What a look has told: all that its snapshot shows, and `own`, the transaction that it was part of. Counts only on
/// the server's present timeline, and on the connection that told it: a server that was restored, promoted or ended by
/// a crash gives the numbers of lost transactions away again.
struct Cursor {
  std::string timeline{};
  std::string snapshot{"1:1:"};          ///< As PostgreSQL writes it.
  std::uint64_t end{1};                  ///< It shows nothing from here on,
  std::vector<std::uint64_t> running{};  ///< nor these.
  std::uint64_t own{};
  std::uint64_t connection{};  ///< See Connection::number().
};
Cursor cursor_of(std::string_view text);  ///< Of an empty or garbled one: nothing was told.
std::string text_of(const Cursor& cursor);

/// Whether a notice is of a transaction that the look has told.
bool told_by(const Cursor& cursor, std::string_view notice);

/// The one release that a notice names. Nothing: there may be other news, or somebody else said something.
std::optional<Release> release_of(std::string_view notice);

/// How long a write may wait for a row, see lock_wait(), and where it notifies.
struct Bearings {
  std::string lock_wait;
  std::string channel;
};

/// Of a session: the last part of its row's key. It is there, or at the next one if we were not answered, and moves on
/// with the write. A row that stays would be found ever more slowly beside a transaction that stays open.
struct Place {
  std::uint64_t now{}, next{};
};

/// Where a sweep goes on: after these two, in the order of the table. It begins after the least bigint.
struct SweepPass {
  static constexpr std::size_t page = 100;  ///< So many of each at once.
  SessionId session{1ull << 63};
  std::string election{};
};

/// What is told where the cursor does not count.
enum class Unknown { tells_everything, tells_no_lead };

class GroupStatements {
 public:
  explicit GroupStatements(const std::string& group);

  using Names = std::vector<std::string>;

  /// The first three answer what answer_of() reads. A write that was refused has written nothing. `joined`: if there
  /// are any, nothing else need be told.
  Statement look(const std::string& cursor, Unknown unknown = Unknown::tells_everything,
                 const Names& joined = {}) const;
  Statement open(SessionId id, const Session& session, const Bearings& at, const Names& joined = {}) const;
  /// Of a commit all but its releases. If its cursor does not count, it tells the leads that it claimed, and no others.
  Statement renewal(const Commit& commit, const Bearings& at, const Place& place = {}) const;
  /// Its releases, which released_in() reads. They come first, and renew nothing: so they need not wait for the disk
  /// before others see them. If a crash loses them, it also loses whatever followed them.
  Statement giving_back(const Commit& commit, const Bearings& at, const Place& place, bool may_be_lost) const;

  Statement end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                const Bearings& at) const;      ///< Answers one row if it was applied, else none.
  Statement ended(SessionId id) const;          ///< Answers how many rows there are of that session that has ended.
  Statement past(const SweepPass& pass) const;  ///< Answers what past_in() reads.
  Statement sweep(const std::vector<SessionId>& ended, const Bearings& at) const;  ///< Answers how many.
  Statement release_left_behind(const Names& elections, const Bearings& at) const;
  using Leads = std::vector<std::pair<std::string, Token>>;
  /// Answers a row for each that it removed, which retired_in() reads.
  Statement retire(const Leads& leads, const Bearings& at) const;
  Statement request_step_down(const std::string& election, const StepDown& request,
                              const Bearings& at) const;  ///< Answers one row if it was applied, else none.
  Statement lead(const std::string& election) const;      ///< Answers 1 if there is one, else 0.

  const std::string& group() const { return group_; }  ///< As a bytea literal.

 private:
  const std::string group_;
  const std::string look_, open_, renewal_, claims_, releases_, end_, ended_, past_, sweep_, left_behind_, retire_,
      step_down_, lead_;
};

/// What is past: sessions that may go, and leads that may be released.
struct Past {
  std::vector<SessionId> sessions;
  std::vector<std::string> leads;
};
Past past_in(const pqxx::result& rows);

std::set<std::string> retired_in(const pqxx::result& rows);
std::vector<std::string> released_in(const pqxx::result& rows);

struct Answer : Committed {
  std::map<SessionId, std::uint64_t> places{};  ///< Of the sessions that it tells.
  bool only_reads{};                            ///< The server's session.
};

/// `connection`: its number. `spoilt` makes the error of a lead that cannot be read: of its election, and what is
/// wrong.
Answer answer_of(const pqxx::result& rows, std::uint64_t connection,
                 const std::function<Error(const std::string& election, const std::string& wrong)>& spoilt);

}  // namespace tenure::postgres
