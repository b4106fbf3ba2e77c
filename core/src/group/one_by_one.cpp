// SPDX-License-Identifier: Apache-2.0
#include <tenure/one_by_one.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "kit/random.hpp"

namespace tenure {
namespace {

// ---- what a record holds ----

/// An id has 63 bits. A session that has ended has this one too, so that no renewal ever finds it: a compare_and_set
/// cannot demand that a record is not released.
constexpr std::uint64_t ended_bit = std::uint64_t{1} << 63;

/// A slot whose session was swept. No session has this id and has ended.
constexpr Token swept{ended_bit};

SessionId id_of(const Record& record) { return {record.token.value & ~ended_bit}; }
bool has_ended(const Record& record) { return record.released || (record.token.value & ended_bit) != 0; }

/// Two numbers of 64 bits, where the record of a single election has the incarnation.
std::string pair_of(std::uint64_t a, std::uint64_t b) { return hex(a) + hex(b); }

std::optional<std::pair<std::uint64_t, std::uint64_t>> unpaired(const std::string& text) {
  if (text.size() != 32) return std::nullopt;
  const auto a = number<std::uint64_t>(std::string_view(text).substr(0, 16), 16);
  const auto b = number<std::uint64_t>(std::string_view(text).substr(16), 16);
  if (!a || !b) return std::nullopt;
  return std::pair(*a, *b);
}

/// In the same place, in 64 bytes, which every store keeps.
std::string counts_of(const Session& session) {
  return pair_of(std::uint64_t{session.joined} << 32 | session.most, session.names) +
         pair_of(session.weight, session.preferences);
}

bool read_counts(const std::string& text, Session& session) {
  if (text.size() != 64) return false;
  const auto first = unpaired(text.substr(0, 32)), second = unpaired(text.substr(32));
  if (!first || !second || second->first > UINT32_MAX) return false;
  session.joined = static_cast<std::uint32_t>(first->first >> 32);
  session.most = static_cast<std::uint32_t>(first->first);
  session.names = first->second;
  session.weight = static_cast<std::uint32_t>(second->first);
  session.preferences = second->second;
  return true;
}

Record record_of(SessionId id, const Session& session) {
  auto record = session.record;
  record.token = Token{id.value};
  record.incarnation = counts_of(session);
  return record;
}

std::optional<Session> session_of(const Record& record) {
  Session session{.record = record};
  if (!read_counts(record.incarnation, session)) return std::nullopt;
  session.record.token = {};
  session.record.incarnation.clear();
  session.record.released = has_ended(record);
  return session;
}

Record ended(Record record, std::uint64_t new_beat) {
  record.token.value |= ended_bit;
  record.beat = new_beat;
  record.released = true;
  return record;
}

/// Nothing, too, if it cannot be read.
std::optional<Lead> lead_of(const Read& read) {
  if (!read.record || read.unreadable) return std::nullopt;
  const auto named = unpaired(read.record->incarnation);
  if (!named) return std::nullopt;
  if (read.record->token > greatest_lead_token) return std::nullopt;
  Lead lead{.token = read.record->token, .session = {named->first}, .released = read.record->released};
  if (named->second != 0) lead.heir = SessionId{named->second};
  if (read.step_down && read.step_down->token == lead.token) lead.step_down = read.step_down;
  return lead;
}

std::optional<Expected> as_it_is(const std::optional<Record>& record) {
  if (!record) return std::nullopt;
  return Expected{record->token, {record->beat}};
}

/// A store may answer at once although its time is over. Here many records are asked, so that would go on for long.
template <class Ask>
auto in_time(const Limit& limit, Ask ask) -> decltype(ask()) {
  if (limit.passed())
    return Error{Fault::timed_out,
                 "one_by_one: the call's limit passed before all records were asked; raise Timing::call, or keep fewer "
                 "elections in one group"};
  return ask();
}
/// So many quarters of the time that is left.
Limit part_of(const Limit& limit, int quarters) {
  const auto now = limit.clock.now();
  return {limit.clock, now + quarters * (limit.by - now) / 4, limit.stop};
}

Result<Read> read_of(ConditionalStore& store, const Limit& limit) {
  return in_time(limit, [&] { return store.read(limit); });
}
Result<Swap> swap_of(ConditionalStore& store, const std::optional<Expected>& expected, const Record& next,
                     const Limit& limit) {
  return in_time(limit, [&] { return store.compare_and_set(expected, next, limit); });
}

/// Makes of a record what `next_of` says, and again whenever another write came first. Returns what stands; `applied`
/// says whether that is ours. If `next_of` returns nothing, nothing is written.
template <class NextOf>
Result<Swap> replace(ConditionalStore& store, const Limit& limit, NextOf next_of) {
  auto read = read_of(store, limit);
  if (!read) return read.error();
  Swap now{false, *std::move(read)};
  for (;;) {
    const std::optional<Record> next = next_of(now.found);
    if (!next) return now;
    auto swap = swap_of(store, as_it_is(now.found.record), *next, limit);
    if (!swap || swap->applied) return swap;
    now = *std::move(swap);
  }
}

class OneByOne final : public GroupStore {
 public:
  OneByOne(std::string group, GroupRecords records) : group_(std::move(group)), records_(std::move(records)) {}

  std::string group() const override { return group_; }

  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    ++round_;
    auto sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    if (auto error = read_leads(limit)) return *std::move(error);
    return told(cursor, *sessions);
  }

  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    ++round_;
    if (auto error = read_leads(limit)) return *std::move(error);  // before the write, so that only this may fail
    auto sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    Committed out;
    if (!sessions->slots.contains(id)) {
      if (auto error = add(record_of(id, session), *sessions, limit)) return *std::move(error);
      out.granted = true;
    }
    sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    out.look = told({}, *sessions);
    return out;
  }

  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    if (auto error = refused_commit(commit)) return *std::move(error);
    ++round_;
    Committed out;
    const auto renewed = renew(commit, limit);
    if (!renewed) return renewed.error();
    if (renewed->applied) {
      out.granted = true;
      out.token = std::max(commit.at_least, Token{static_cast<std::uint64_t>(renewed->found.now_ms)});
      change(commit, out, part_of(limit, 2));
    }
    const auto sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    // What was renewed is renewed, also if there is no time for all changes or to read all leads. The next look goes on
    // with them. But the lease counts only if ours were read, by rule 22.
    const auto by = part_of(limit, 3);
    const auto ours_unread = read_own_leads(by);
    auto unread = ours_unread ? ours_unread : read_leads(by);
    if (unread && !all_read()) return *std::move(unread);
    out.look = told(commit.cursor, *sessions);
    if (ours_unread) out.look.whole = false, out.look.cursor.clear();
    return out;
  }

  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    const auto sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    const auto slot = sessions->slots.find(id);
    if (slot == sessions->slots.end()) return true;
    bool over = false;
    const auto done = replace(*slots_[slot->second], limit, [&](const Read& read) -> std::optional<Record> {
      over = !read.record || id_of(*read.record) != id || has_ended(*read.record);
      if (over || std::find(beats.begin(), beats.end(), read.record->beat) == beats.end()) return std::nullopt;
      return ended(*read.record, new_beat);
    });
    if (!done) return done.error();
    return over || done->applied;
  }

  Result<int> sweep(const Limit& limit) override {
    ++round_;
    const auto sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    if (auto error = read_leads(limit)) return *std::move(error);
    std::set<SessionId> named;
    for (const auto& [election, seen] : leads_)
      if (seen.lead && !seen.lead->released) named.insert(seen.lead->session);
    int removed = 0;
    for (const auto& [id, session] : sessions->all) {
      if (!session.record.released || named.contains(id)) continue;
      const auto done = replace(*slots_[sessions->slots.at(id)], limit, [&, id = id](const Read& read) {
        if (!read.record || read.record->token == swept || id_of(*read.record) != id) return std::optional<Record>();
        return std::optional(Record{.token = swept, .beat = random_u64(), .released = true});
      });
      if (!done) return done.error();
      removed += done->applied;
    }
    return removed;
  }

  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    auto& seen = seen_of(election);
    const auto read = read_of(*seen.store, limit);
    if (!read) return read.error();
    if (!read->record)
      return Error{Fault::misconfigured, "nobody has ever led \"" + printable(election, 40) + "\" in the group \"" +
                                             printable(group_, 40) + "\", so nobody can be asked to step down"};
    if (read->unreadable || read->record->token != request.token) return std::nullopt;
    return seen.store->request_step_down(request, limit);
  }

  std::optional<Error> accepts(const Timing& timing) override { return slot(0).accepts(timing); }

 private:
  struct Sessions {
    std::int64_t now_ms{};
    std::map<SessionId, Session> all;
    std::map<SessionId, std::size_t> slots;
    std::vector<std::pair<std::size_t, Record>> free;  ///< What was swept.
    std::size_t used{};                                ///< The first slot that nobody ever used.
  };
  struct Seen {
    std::shared_ptr<ConditionalStore> store;
    bool unreadable{};
    std::optional<Lead> lead{};
    std::uint64_t changed{};
    std::uint64_t round{};  ///< The call that read it last. 0: none has.
  };

  // ---- sessions ----

  ConditionalStore& slot(std::size_t number) {
    while (slots_.size() <= number) slots_.push_back(records_.session(slots_.size()));
    return *slots_[number];
  }

  Error foreign(const std::string& what, const std::string& remedy) const {
    return {Fault::corrupt, "the record of " + what + " in the group \"" + printable(group_, 40) +
                                "\" cannot be read, or is none of a group. Let nobody else write there, and " + remedy};
  }

  /// Whose absence is not certain may have been lost, and its session or its leader goes on.
  static std::optional<Error> may_lose(const Read& read) {
    if (read.record || read.absence_certain) return std::nullopt;
    return Error{Fault::misconfigured,
                 "one_by_one: this store may lose single records, and two could then lead; take one that loses none"};
  }

  Result<Sessions> read_sessions(const Limit& limit) {
    Sessions out;
    for (;; ++out.used) {
      const auto read = read_of(slot(out.used), limit);
      if (!read) return read.error();
      if (auto error = may_lose(*read)) return *std::move(error);
      out.now_ms = read->now_ms;
      if (!read->record) return out;
      if (read->record->token == swept) {
        out.free.emplace_back(out.used, *read->record);
        continue;
      }
      auto session = session_of(*read->record);
      if (read->unreadable || !session)
        return foreign("session slot " + std::to_string(out.used), "stop all processes of the group and delete it");
      const auto id = id_of(*read->record);
      out.all.emplace(id, *std::move(session));
      out.slots.emplace(id, out.used);
    }
  }

  /// In the first slot that is free. Another process may be faster at each.
  std::optional<Error> add(const Record& record, const Sessions& seen, const Limit& limit) {
    for (const auto& [number, stands] : seen.free) {
      const auto swap = swap_of(slot(number), as_it_is(stands), record, limit);
      if (!swap) return swap.error();
      if (swap->applied) return std::nullopt;
    }
    for (auto number = seen.used;; ++number) {
      const auto swap = swap_of(slot(number), std::nullopt, record, limit);
      if (!swap) return swap.error();
      if (swap->applied) return std::nullopt;
    }
  }

  /// Not applied: the session has ended, or has none of these beats, or does not stand.
  Result<Swap> renew(const Commit& commit, const Limit& limit) {
    if (commit.marker != 0) return Swap{};  // a group here has none
    if (own_ != commit.session) {
      const auto sessions = read_sessions(limit);
      if (!sessions) return sessions.error();
      const auto found = sessions->slots.find(commit.session);
      if (found == sessions->slots.end()) return Swap{};
      own_ = commit.session;
      own_slot_ = found->second;
    }
    return swap_of(slot(own_slot_), Expected{Token{commit.session.value}, commit.beats},
                   record_of(commit.session, commit.next), limit);
  }

  /// Whether a session is there and has not ended. An end is final, so it is remembered.
  Result<bool> lives(SessionId id, const Limit& limit) {
    if (ended_.contains(id)) return false;
    const auto sessions = read_sessions(limit);
    if (!sessions) return sessions.error();
    ended_.clear();
    for (const auto& [each, session] : sessions->all)
      if (session.record.released) ended_.insert(each);
    return sessions->all.contains(id) && !ended_.contains(id);
  }

  // ---- leads ----

  Seen& seen_of(const std::string& election) {
    const auto it = leads_.find(election);
    return it != leads_.end() ? it->second : leads_.emplace(election, Seen{records_.lead(election)}).first->second;
  }

  void note(Seen& seen, const Read& read) {
    auto lead = lead_of(read);
    const bool unreadable = read.unreadable || (read.record && !lead);
    if (lead != seen.lead || unreadable != seen.unreadable) seen.changed = ++changes_;
    seen.lead = std::move(lead);
    seen.unreadable = unreadable;
    seen.round = round_;
  }

  std::optional<Error> read_lead(Seen& seen, const Limit& limit) {
    const auto read = read_of(*seen.store, limit);
    if (!read) return read.error();
    if (auto error = may_lose(*read)) return error;
    note(seen, *read);
    return std::nullopt;
  }

  /// What may end a tenure of ours.
  std::optional<Error> read_own_leads(const Limit& limit) {
    for (auto& [election, seen] : leads_) {
      const bool ours = seen.unreadable || (seen.lead && !seen.lead->released && seen.lead->session == own_);
      if (!ours || seen.round == round_) continue;
      if (auto error = read_lead(seen, limit)) return error;
    }
    return std::nullopt;
  }

  /// Goes on after the one that was read last, so that in the end each is read, however short the time.
  std::optional<Error> read_leads(const Limit& limit) {
    auto names = records_.elections(limit);
    if (!names) return names.error();
    for (const auto& name : *names) seen_of(name);
    auto it = leads_.upper_bound(read_last_);
    for (auto left = leads_.size(); left > 0; --left, ++it) {
      if (it == leads_.end()) it = leads_.begin();
      if (it->second.round == round_) continue;
      if (auto error = read_lead(it->second, limit)) return error;
      read_last_ = it->first;
    }
    return std::nullopt;
  }

  bool all_read() const {
    return std::all_of(leads_.begin(), leads_.end(), [](const auto& entry) { return entry.second.round > 0; });
  }

  // ---- changes ----

  void change(const Commit& commit, Committed& out, const Limit& limit) {
    for (const auto& release : commit.releases) {
      const auto done =
          changed(release.election, limit, [&](const Read& read) { return released(commit, release, read); });
      if (!done)
        out.unanswered.push_back(release.election);
      else if (*done)
        out.released.push_back(release.election);
    }
    for (const auto& claim : commit.claims) {
      const auto done = changed(claim.election, limit,
                                [&](const Read& read) { return claimed(commit, claim, out.token, read, limit); });
      if (done && *done) out.claimed.push_back(claim.election);  // or a look shows it, if it was done all the same
    }
  }

  /// nullopt: no answer came.
  template <class NextOf>
  std::optional<bool> changed(const std::string& election, const Limit& limit, NextOf next_of) {
    auto& seen = seen_of(election);
    const auto done = replace(*seen.store, limit, next_of);
    if (!done) return std::nullopt;
    note(seen, done->found);
    return done->applied;
  }

  static std::optional<Record> released(const Commit& commit, const Release& release, const Read& read) {
    const auto lead = lead_of(read);
    if (!lead || lead->token != release.token || lead->session != commit.session || lead->released) return std::nullopt;
    auto next = *read.record;
    next.released = true;
    next.beat = random_u64();
    next.incarnation = pair_of(commit.session.value, release.heir.value_or(SessionId{}).value);
    return next;
  }

  std::optional<Record> claimed(const Commit& commit, const Claim& claim, Token token, const Read& read,
                                const Limit& limit) {
    const auto lead = lead_of(read);
    if (read.unreadable || (read.record && !lead)) return std::nullopt;
    if (claim.expected != (lead ? std::optional(lead->token) : std::nullopt)) return std::nullopt;
    if (lead && !lead->released && lead->session != commit.session) {
      if (std::find(commit.ended.begin(), commit.ended.end(), lead->session) == commit.ended.end()) return std::nullopt;
      const auto alive = lives(lead->session, limit);
      if (!alive || *alive) return std::nullopt;
    }
    auto next = commit.next.record;
    next.token = token;
    next.beat = random_u64();
    next.released = false;
    next.incarnation = pair_of(commit.session.value, 0);
    return next;
  }

  // ---- looks ----

  /// A cursor is a count of the changes that this object saw, behind the object's own number.
  Look told(const std::string& cursor, const Sessions& sessions) const {
    const auto mine = hex(self_);
    constexpr auto none = UINT64_MAX;
    const auto counted = std::string_view(cursor).substr(std::min(mine.size(), cursor.size()));
    const auto since = cursor.starts_with(mine) ? number<std::uint64_t>(counted).value_or(none) : none;
    Look out{.now_ms = sessions.now_ms, .sessions = sessions.all, .whole = since > changes_};
    for (const auto& [election, seen] : leads_) {
      if (!out.whole && seen.changed <= since) continue;
      if (seen.lead) out.leads.emplace(election, *seen.lead);
      if (seen.unreadable)
        out.unreadable.emplace(election, foreign("\"" + printable(election, 40) + "\"",
                                                 "put it back from a copy; or stop all processes of the group, delete "
                                                 "it, and start them again"));
    }
    out.cursor = mine + std::to_string(changes_);
    return out;
  }

  const std::string group_;
  const GroupRecords records_;
  const std::uint64_t self_{random_u64()};
  std::vector<std::shared_ptr<ConditionalStore>> slots_;
  std::map<std::string, Seen> leads_;
  std::string read_last_;
  std::uint64_t changes_{};
  std::uint64_t round_{};  ///< Of the calls.
  std::set<SessionId> ended_;
  std::optional<SessionId> own_;
  std::size_t own_slot_{};
};

}  // namespace

std::shared_ptr<GroupStore> one_by_one(std::string group, GroupRecords records) {
  if (!records.session || !records.lead || !records.elections)
    throw std::invalid_argument("one_by_one: session, lead and elections are all needed; one of them is missing");
  return std::make_shared<OneByOne>(std::move(group), std::move(records));
}

}  // namespace tenure
