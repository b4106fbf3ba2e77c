// SPDX-License-Identifier: Apache-2.0
// The GroupStore.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kit/joined_names.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/wait.hpp>

#include "client.hpp"
#include "faults.hpp"
#include "group_statements.hpp"

namespace tenure::postgres {
namespace {

constexpr int most_races = 5;            ///< That one commit loses.
constexpr int renewals_in_a_place = 50;  ///< Not many more versions of a row fit into its page.

/// Whether there is such a lead. A request to another tenure than the one that stands is not kept.
bool request_now(Connection& connection, const GroupStatements& statements, const std::string& election,
                 const StepDown& request, const std::string& wait) {
  return !connection.execute(statements.request_step_down(election, request, {wait, connection.channel()})).empty() ||
         connection.execute(statements.lead(election))[0][0].as<int>() > 0;
}

/// What expects no beat finds nothing. A plan outlives the table's growth, so none may read the table from end to end:
/// that is cheapest while it is empty.
Purpose asking(const GroupStatements& statements, const std::string& group, const std::shared_ptr<Notes>& notes) {
  const Bearings nowhere{lock_wait({}), {}};
  Commit commit;
  commit.claims.push_back({.election = "-"});
  commit.releases.push_back({.election = "-"});
  const std::vector<Statement> writes{statements.renewal({}, nowhere), statements.renewal(commit, nowhere),
                                      statements.giving_back(commit, nowhere, {}, false)};
  auto prepared = writes;
  prepared.push_back(statements.look({}));
  return {.name = group,
          .prepared = std::move(prepared),
          .rehearsed = writes,
          .settings = {"set default_transaction_isolation = 'read committed'", "set enable_seqscan = off"},
          .notes = notes};
}

/// The remedy names a session that nobody has. So nobody claims the lead before its leader, if there is one, has
/// learned of the change.
Error spoilt(const Connection& connection, const std::string& group, const std::string& election,
             const std::string& wrong) {
  const auto& leads = connection.settings().schema.tables[1].name;
  return connection.corrupt("the row of " + printable(election, 80) + " in " + leads + " was not written by tenure: " +
                            wrong + ". Do not delete it, since somebody may lead it; mend it: update " + leads +
                            " set token = (extract(epoch from clock_timestamp()) * 1000)::bigint, session = 0, "
                            "released = false, changed = pg_current_xact_id() where grp = '" +
                            group + "' and election = '" + bytea(election) + "'");
}

Answer answered(Connection& connection, const GroupStatements& statements, const Statement& statement) {
  auto out = answer_of(connection.execute(statement), connection.number(),
                       [&](const std::string& election, const std::string& wrong) {
                         return spoilt(connection, statements.group(), election, wrong);
                       });
  connection.must_write(out.only_reads);
  return out;
}

/// What stands, as the refusal of a write that had no effect.
Answer refused(Connection& connection, const GroupStatements& statements, const std::string& cursor, Unknown unknown) {
  return answered(connection, statements, statements.look(cursor, unknown));
}

/// All leads may take longer to tell than a renewal may. So where the cursor does not count, the caller looks.
Answer without_leads_if_unknown(Answer answer) {
  if (std::exchange(answer.look.whole, false)) answer.look.cursor.clear();
  return answer;
}

/// Empty if another connection told it.
std::string of_this(const Connection& connection, const std::string& cursor) {
  return cursor_of(cursor).connection == connection.number() ? cursor : std::string();
}

Answer open_now(Connection& connection, const GroupStatements& statements, SessionId id, const Session& session,
                const std::vector<std::string>& joined, const std::string& wait) {
  auto done = answered(connection, statements, statements.open(id, session, {wait, connection.channel()}, joined));
  if (done.granted) return done;
  return refused(connection, statements, {}, Unknown::tells_everything);
}

/// Whether the commit would be granted now.
bool may_be_granted(const Commit& commit, const Look& look) {
  const auto found = look.sessions.find(commit.session);
  return found != look.sessions.end() && !found->second.record.released &&
         std::ranges::count(commit.beats, found->second.record.beat) > 0;
}

/// Whether it can be one row that the server refused: by a constraint, a policy, a trigger, a page that is damaged, or
/// because somebody else has locked it for too long.
bool refuses_a_row(const std::exception& thrown, Connection& connection) {
  constexpr std::array<std::string_view, 6> codes{"22", "23", "44", "55P03", "P0", "XX"};
  if (!dynamic_cast<const pqxx::sql_error*>(&thrown) || !connection.stands()) return false;
  const auto sqlstate = sqlstate_of(thrown);
  return std::ranges::any_of(codes, [&](auto code) { return sqlstate.starts_with(code); }) ||
         (sqlstate == "42501" && std::string_view(thrown.what()).find("row-level security") != std::string_view::npos);
}

/// One row that cannot be written costs none of the others: ever fewer come at once, until it stands alone. `until`
/// ends that. Whether all were tried.
template <class Item, class Work, class Refused>
bool by_halves(Connection& connection, const std::vector<Item>& all, Clock::Time until, const Work& work,
               const Refused& refused) {
  if (all.empty()) return true;
  try {
    work(all);
    return true;
  } catch (const std::exception& e) {
    if (!refuses_a_row(e, connection)) throw;
    if (all.size() == 1) {
      refused(all.front(), connection.failed(e));
      return true;
    }
  }
  if (boot_clock().now() >= until) return false;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  bool all_tried = true;
  for (const auto& half : {std::vector(all.begin(), middle), std::vector(middle, all.end())})
    all_tried = by_halves(connection, half, until, work, refused) && all_tried;
  return all_tried;
}

/// What came of a commit's releases.
struct GivenBack {
  std::vector<std::string> released;
  std::map<std::string, Error> refused;
};

/// That may take half of the time that there is. Behind a pooler the cursor outlives a crash of the server, so there
/// nothing that was seen may be lost.
void give_back(Connection& connection, const GroupStatements& statements, Commit commit, const Place& place,
               Clock::Time until, GivenBack& out) {
  const auto write = [&](const std::vector<Release>& some) {
    commit.releases = some;
    const Bearings at{lock_wait(until), connection.channel()};
    auto done = released_in(connection.execute(statements.giving_back(commit, at, place, connection.number() != 0)));
    std::ranges::move(done, std::back_inserter(out.released));
  };
  const auto refused = [&](const Release& one, Error why) {
    out.refused.insert_or_assign(one.election, std::move(why));
  };
  const auto all = commit.releases;
  if (by_halves(connection, all, until, write, refused)) return;
  for (const auto& one : all)
    if (std::ranges::find(out.released, one.election) == out.released.end())
      out.refused.try_emplace(one.election, Error{Fault::timed_out, "it was not tried in time beside another one"});
}

Clock::Time half_way(Clock::Time until) {
  const auto now = boot_clock().now();
  return now + std::max<Clock::Duration>(until - now, {}) / 2;
}

/// One lead that cannot be written is not to cost the lease of all. So the session is renewed alone. Then come ever
/// fewer of the claims, until they are granted, or one is left, which is told apart. The others are claimed anew.
Answer renewed_without(Connection& connection, const GroupStatements& statements, Commit commit, const Place& place,
                       Error why, Clock::Time until) {
  const auto at = [&] { return Bearings{lock_wait(until), connection.channel()}; };
  auto claims = std::exchange(commit.claims, {});
  auto done = answered(connection, statements, statements.renewal(commit, at(), place));
  commit.beats = {commit.next.record.beat};
  while (done.granted && claims.size() > 1 && boot_clock().now() < until) {
    commit.claims.assign(claims.begin(), claims.begin() + static_cast<std::ptrdiff_t>(claims.size() / 2));
    try {
      return answered(connection, statements, statements.renewal(commit, at(), place));
    } catch (const std::exception& e) {
      if (!refuses_a_row(e, connection)) throw;
      why = connection.failed(e);
      claims = std::exchange(commit.claims, {});
    }
  }
  if (done.granted && claims.size() == 1) done.refused.emplace(claims.front().election, std::move(why));
  return done;
}

/// A commit that met another one, where that is a deadlock or the isolation level makes an error of it, was rolled
/// back. It is refused only if its session is over. Otherwise it comes again, because it had no effect: two commits
/// deadlock if one claims as absent what the other one found there. What it released stays so.
Result<Answer> commit_or_less(Connection& connection, const GroupStatements& statements, Commit commit, Place place,
                              Clock::Time until) {
  commit.cursor = of_this(connection, commit.cursor);
  const auto refusal = [&] { return refused(connection, statements, commit.cursor, Unknown::tells_no_lead); };
  if (commit.marker != 0) return refusal();
  GivenBack given;
  const auto with_releases = [&](Answer done) {
    done.released = given.released;
    done.refused.insert(given.refused.begin(), given.refused.end());
    return done;
  };
  for (int races = 1;; ++races) {
    std::optional<Error> lost;
    try {
      const auto at = [&] { return Bearings{lock_wait(until), connection.channel()}; };
      give_back(connection, statements, commit, place, half_way(until), given);
      auto done = answered(connection, statements, statements.renewal(commit, at(), place));
      if (done.granted) return with_releases(std::move(done));
    } catch (const std::exception& e) {
      if (!commit.claims.empty() && refuses_a_row(e, connection)) {
        auto done = renewed_without(connection, statements, commit, place, connection.failed(e), until);
        if (done.granted) return with_releases(std::move(done));
      } else if (!lost_a_race(sqlstate_of(e))) {
        throw;
      } else {
        lost = connection.failed(e);
      }
    }
    auto stands = with_releases(refusal());
    if (!may_be_granted(commit, stands.look)) return stands;
    const auto found = stands.places.at(commit.session);
    if (!lost && (found == place.now || found == place.now + 1)) return stands;
    if (!lost) place = {found, found};
    if (races == most_races || boot_clock().now() >= until) return lost ? Result<Answer>(*lost) : stands;
  }
}

Result<Answer> commit_now(Connection& connection, const GroupStatements& statements, const Commit& commit,
                          const Place& place, Clock::Time until) {
  auto done = commit_or_less(connection, statements, commit, place, until);
  if (!done) return done;
  done->look.all_sessions = !done->granted;
  return without_leads_if_unknown(*std::move(done));
}

Result<bool> end_now(Connection& connection, const GroupStatements& statements, SessionId id,
                     const std::vector<std::uint64_t>& beats, std::uint64_t new_beat, const std::string& wait) {
  try {
    if (!connection.execute(statements.end(id, beats, new_beat, {wait, connection.channel()})).empty()) return true;
  } catch (const std::exception& e) {
    if (!lost_a_race(sqlstate_of(e))) throw;
  }
  return connection.execute(statements.ended(id))[0][0].as<int>() > 0;
}

/// What came of a sweep, and where the next one goes on.
struct Swept {
  int removed{};
  SweepPass rest{};
  bool more{};
};

/// Rows that a sweep could not write, in one line of the log.
class Stuck {
 public:
  void add(const std::string& row, const Error& why) {
    if (count_++ == 0) first_ = row + " cannot be written, now that its session has ended: " + why.message;
  }
  void note(Connection& connection) const {
    if (count_ == 0) return;
    const auto others = count_ == 1 ? std::string() : std::to_string(count_ - 1) + " more rows like this: ";
    connection.notes()->add(Level::warning, "postgres: " + others + first_);
  }

 private:
  int count_{};
  std::string first_;
};

Swept sweep_now(Connection& connection, const GroupStatements& statements, SweepPass pass, Clock::Time until) {
  Swept out;
  Stuck stuck;
  const auto at = [&] { return Bearings{lock_wait(until), connection.channel()}; };
  const auto half = half_way(until);
  do {
    const auto past = past_in(connection.execute(statements.past(pass)));
    by_halves(
        connection, past.sessions, half,
        [&](const std::vector<SessionId>& some) {
          out.removed += connection.execute(statements.sweep(some, at()))[0][0].as<int>();
        },
        [&](SessionId, const Error& why) { stuck.add("a session's row", why); });
    by_halves(
        connection, past.leads, half,
        [&](const auto& some) { connection.execute(statements.release_left_behind(some, at())); },
        [&](const std::string& election, const Error& why) {
          stuck.add("the lead of " + printable(election, 80), why);
        });
    if (!past.sessions.empty()) pass.session = past.sessions.back();
    if (!past.leads.empty()) pass.election = past.leads.back();
    out.more = std::max(past.sessions.size(), past.leads.size()) == SweepPass::page;
  } while (out.more && boot_clock().now() < half);
  stuck.note(connection);
  if (out.more) out.rest = std::move(pass);
  return out;
}

/// Whoever asks learns of one that could not be removed once the others are.
Result<std::set<std::string>> retire_now(Connection& connection, const GroupStatements& statements,
                                         const GroupStatements::Leads& leads, Clock::Time until) {
  std::set<std::string> out;
  std::optional<Error> first;
  by_halves(
      connection, leads, until,
      [&](const auto& some) {
        out.merge(retired_in(connection.execute(statements.retire(some, {lock_wait(until), connection.channel()}))));
      },
      [&](const auto&, Error why) {
        if (!first) first = std::move(why);
      });
  return first ? Result<std::set<std::string>>(*std::move(first)) : std::move(out);
}

/// It may find first that the tables have vanished.
Settings making_no_table(Settings settings) {
  settings.schema.sql.clear();
  return settings;
}

/// One group's sessions and leads: looked at, changed in one statement or two, announced.
class Group final : public GroupStore {
 public:
  Group(const Settings& settings, const std::string& group, const Log& log)
      : group_(group),
        statements_(std::make_shared<GroupStatements>(group)),
        notes_(std::make_shared<Notes>(log, "group", group)),
        client_(settings, asking(*statements_, group, notes_)),
        listener_(making_no_table(settings), Purpose{.name = group, .notes = notes_}) {}

  std::string group() const override { return group_; }
  void joined(const std::string& election) override { joined_.join(election); }
  void left(const std::string& election) override { joined_.leave(election); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    return client_.ask<Look>(
        [=, sql = statements_, joined = joined_.all()](Connection& connection) -> Result<Look> {
          const auto since = of_this(connection, cursor);
          return answered(connection, *sql, sql->look(since, Unknown::tells_everything, joined)).look;
        },
        limit);
  }

  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    joined_.session_begins();
    const auto done = client_.ask<Answer>(
        [=, sql = statements_, joined = joined_.all(), until = by_boot_clock(limit)](Connection& connection) {
          return open_now(connection, *sql, id, session, joined, lock_wait(until));
        },
        limit);
    return done ? Result<Committed>(*done) : done.error();
  }

  /// A session that another object opened is found once its place was told.
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    if (auto error = refused_commit(commit)) return *std::move(error);
    if (seat_.session != commit.session) seat_ = {commit.session};
    const auto left = joined_.left_before(commit);
    const Place place{seat_.place, seat_.place + (seat_.renewals >= renewals_in_a_place ? 1 : 0)};
    auto done =
        client_.ask<Answer>([=, sql = statements_, until = by_boot_clock(limit)](
                                Connection& connection) { return commit_now(connection, *sql, commit, place, until); },
                            limit);
    if (!done) return done.error();
    if (done->granted && !done->look.cursor.empty()) joined_.forget(left);
    if (const auto found = done->places.find(commit.session); done->granted && found != done->places.end())
      seat_ = {commit.session, found->second, found->second == seat_.place ? seat_.renewals + 1 : 0};
    return Committed(*std::move(done));
  }

  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return client_.ask<bool>(
        [=, sql = statements_, until = by_boot_clock(limit)](Connection& connection) {
          return end_now(connection, *sql, id, beats, new_beat, lock_wait(until));
        },
        limit);
  }

  /// What half of the limit does not suffice for, the next sweep goes on with, and that shall come soon.
  Result<int> sweep(const Limit& limit) override {
    auto swept = client_.ask<Swept>([sql = statements_, pass = std::exchange(pass_, {}), until = by_boot_clock(limit)](
                                        Connection& connection) { return sweep_now(connection, *sql, pass, until); },
                                    limit);
    if (!swept) return swept.error();
    pass_ = std::move(swept->rest);
    return std::max(swept->removed, swept->more ? 1 : 0);
  }

  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit) override {
    if (auto error = refused_retirement(leads)) return *std::move(error);
    return client_.ask<std::set<std::string>>(
        [sql = statements_, all = GroupStatements::Leads(leads.begin(), leads.end()),
         until = by_boot_clock(limit)](Connection& connection) { return retire_now(connection, *sql, all, until); },
        limit);
  }

  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    if (auto error = refused_step_down(request.by, request.why)) return error;
    const auto stored = client_.ask<bool>(
        [=, sql = statements_, until = by_boot_clock(limit)](Connection& connection) {
          return request_now(connection, *sql, election, request, lock_wait(until));
        },
        limit);
    if (!stored) return stored.error();
    if (*stored) return std::nullopt;
    return Error{Fault::misconfigured, "postgres: nobody ever led the election \"" + printable(election, 80) +
                                           "\" of \"" + printable(group_, 80) +
                                           "\", so nobody can be asked to step down"};
  }

  /// A caller who comes with the same cursor has not looked since. It is told the same once more.
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    const bool looked = cursor != told_.cursor;
    const auto news = listener_.await_news(
        [seen = cursor_of(cursor), looked, told = told_.news](Connection::News& all) {
          std::erase_if(all, [&](const std::string& notice) {
            return told_by(seen, notice) ||
                   ((looked || notice.starts_with('#')) && std::ranges::count(told, notice) > 0);
          });
        },
        limit);
    if (!news) return std::nullopt;
    told_ = {cursor, *news};
    return news->size() == 1 ? release_of(news->front()) : std::nullopt;
  }

 private:
  const std::string group_;
  const std::shared_ptr<const GroupStatements> statements_;  ///< Shared with calls that outlive us.
  const std::shared_ptr<Notes> notes_;
  JoinedNames joined_;
  /// Where our session stands, see Place, and since how many renewals.
  struct Seat {
    SessionId session{};
    std::uint64_t place{};
    int renewals{};
  } seat_;
  SweepPass pass_;  ///< Of the last sweep.
  Client client_;
  Client listener_;  ///< Of its own, since one may wait while another asks.
  struct Told {
    std::string cursor{};
    Connection::News news{};
  } told_;  ///< By the last await_change().
};

}  // namespace

std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group, const Log& log) {
  check_election(group);
  const auto settings = group_settings_of(options, application_name(group));
  settings.warn(log, "group", group);
  return std::make_shared<Group>(settings, group, log);
}

}  // namespace tenure::postgres
