// SPDX-License-Identifier: Apache-2.0
// Writes and reads the texts of sessions, leads and answers.
#include "group_text.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <tenure/candidate.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/who.hpp>

namespace tenure::redis {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;

constexpr auto any = std::numeric_limits<std::uint64_t>::max();

std::string text_of(SessionId id) { return std::to_string(id.value); }
std::string text_of(Token token) { return std::to_string(token.value); }
std::string text_of(const std::optional<SessionId>& heir) { return heir ? text_of(*heir) : "-"; }
std::string marker_text(std::uint64_t marker) {
  return std::to_string(group_format_version) + " " + std::to_string(marker);
}

/// An entry of the log.
struct Place {
  std::uint64_t ms{}, number{};
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// Reads what is divided by blanks, and knows whether all of it was right.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view word() {
    const auto end = std::min(text_.find(' '), text_.size());
    const auto out = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return out;
  }

  template <class T>
  T number(T least, T most) {
    const auto value = exact<T>(word());
    const bool good = value && *value >= least && *value <= most;
    right_ = right_ && good;
    return good ? *value : T{};
  }
  std::uint64_t number() { return number<std::uint64_t>(0, any); }
  bool flag() { return number<int>(0, 1) == 1; }

  std::optional<SessionId> id_or_dash() {
    if (text_ == "-" || text_.starts_with("- ")) return word(), std::nullopt;
    return SessionId{number()};
  }

  std::string bytes(std::size_t count) {
    right_ = right_ && count <= text_.size();
    const auto out = text_.substr(0, count);
    text_.remove_prefix(out.size());
    return std::string(out);
  }
  std::string rest(std::size_t most) {
    right_ = right_ && text_.size() <= most;
    return bytes(text_.size());
  }

  bool empty() const { return text_.empty(); }
  bool all_right() const { return right_ && text_.empty(); }

 private:
  std::string_view text_;
  bool right_{true};
};

std::optional<Place> place_of(std::string_view id) {
  const auto dash = std::min(id.find('-'), id.size());
  const auto ms = exact<std::uint64_t>(id.substr(0, dash));
  const auto number = exact<std::uint64_t>(id.substr(std::min(dash + 1, id.size())));
  return ms && number ? std::optional(Place{*ms, *number}) : std::nullopt;
}

// ---- what is written ----

void add_cursor(std::vector<std::string>& out, std::string_view cursor) {
  const auto blank = std::min(cursor.find(' '), cursor.size());
  const auto entry = cursor.substr(0, blank);
  const bool ours = place_of(entry).has_value();
  out.emplace_back(ours ? entry : "+");  // past the end of the log, where there is no entry
  out.emplace_back(ours ? cursor.substr(std::min(blank + 1, cursor.size())) : "");
}

void add_beats(std::vector<std::string>& out, const std::vector<std::uint64_t>& beats) {
  out.push_back(std::to_string(beats.size()));
  for (const auto beat : beats) out.push_back(std::to_string(beat));
}

void add_names(std::vector<std::string>& out, const std::vector<std::string>& names) {
  out.push_back(std::to_string(names.size()));
  out.insert(out.end(), names.begin(), names.end());
}

/// Behind the beat, "ended" and the time of writing.
std::string text_of(const Session& session) {
  const auto& record = session.record;
  std::string out;
  for (const auto& number :
       {std::to_string(record.asked.count()), std::to_string(ceil<milliseconds>(record.term).count()),
        std::to_string(session.joined), std::to_string(session.names), std::to_string(session.weight),
        std::to_string(session.most)})
    out += number + " ";
  return out + record.who;
}

// ---- what is read ----

std::optional<Session> session_of(std::string_view text) {
  Words words(text);
  Session out;
  auto& record = out.record;
  record.beat = words.number();
  record.released = words.flag();
  record.written_ms = words.number<std::int64_t>(0, INT64_MAX);
  record.asked = Clock::Duration(words.number<std::int64_t>(0, INT64_MAX));
  record.term = milliseconds(words.number<std::int64_t>(0, milliseconds(longest_stored_term).count()));
  out.joined = words.number<std::uint32_t>(0, UINT32_MAX);
  out.names = words.number();
  out.weight = words.number<std::uint32_t>(0, UINT32_MAX);
  out.most = words.number<std::uint32_t>(0, UINT32_MAX);
  record.who = words.rest(max_who_bytes);
  return words.all_right() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Lead> lead_of(std::string_view text) {
  Words words(text);
  Lead out;
  out.token.value = words.number<std::uint64_t>(0, greatest_lead_token.value);
  out.session.value = words.number();
  out.released = words.flag();
  out.heir = words.id_or_dash();
  if (!words.empty()) {
    auto& request = out.step_down.emplace();
    request.token.value = words.number();
    request.by = words.bytes(words.number<std::size_t>(0, max_candidate_bytes));
    request.why = words.rest(max_why_bytes);
  }
  return words.all_right() ? std::optional(std::move(out)) : std::nullopt;
}

Error spoilt(const std::string& key, std::string_view field) {
  return {Fault::corrupt, printable(key) + " holds something that tenure did not write, at \"" + printable(field, 40) +
                              "\". Delete the key: the group is then founded anew, and its elections have leaders a "
                              "term later"};
}

/// As redis-cli reads it.
std::string in_quotes(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\')
      out += c;
    else
      out.append("\\x").append(1, digits[byte / 16]).append(1, digits[byte % 16]);
  }
  return out + '"';
}

/// In one step, so that its leader, if there is one, learns of it by its next commit. Nobody takes the lead over sooner
/// than a term after that step.
constexpr std::string_view mending =
    "local t = redis.call('TIME'); local token = t[1] .. string.format('%03d', math.floor(t[2] / 1000)); "
    "redis.call('HSET', KEYS[1], ARGV[1], token .. ' 0 0 -'); "
    "return redis.call('XADD', KEYS[2], '*', '0', '', ARGV[1], '')";

Error unreadable(const std::string& group, std::string_view election, std::string_view value) {
  const auto leads = in_quotes(group + ":e"), name = in_quotes(election);
  return {Fault::corrupt, printable(group) + ":e holds what tenure did not write at " + name + ": " +
                              in_quotes(value.substr(0, 40)) +
                              ". Do not delete it, since somebody may lead it. Put back what stood there, or mend it "
                              "by redis-cli: EVAL " +
                              in_quotes(mending) + " 2 " + leads + " " + in_quotes(group + ":log") + " " + name};
}

/// Of a hash, but the marker.
template <class Take>
std::optional<Error> read_pairs(const Reply& hash, const std::string& key, const std::string& group, Take take) {
  if (hash.kind != Reply::Kind::list || hash.list.size() % 2 != 0) return no_answer(group);
  for (std::size_t i = 0; i < hash.list.size(); i += 2) {
    const auto &name = hash.list[i], &value = hash.list[i + 1];
    if (name.kind != Reply::Kind::text) return no_answer(group);
    if (name.text.empty() || value.kind == Reply::Kind::nil) continue;
    if (value.kind != Reply::Kind::text) return no_answer(group);
    if (!take(name.text, value.text)) return spoilt(key, name.text);
  }
  return std::nullopt;
}

std::optional<Error> read_sessions(const Reply& hash, const std::string& group, Look& out) {
  return read_pairs(hash, group + ":s", group, [&](const std::string& name, const std::string& value) {
    const auto id = exact<std::uint64_t>(name);
    if (name == "next") {
      const auto follows = exact<std::uint64_t>(value);
      if (follows && *follows > 0) out.retired = {*follows - 1};
      return follows && *follows > 0 && *follows <= greatest_lead_token.value;
    }
    auto session = session_of(value);
    if (!id || !session) return false;
    out.sessions.emplace(SessionId{*id}, *std::move(session));
    return true;
  });
}

std::optional<Error> read_leads(const Reply& hash, const std::string& group, Look& out) {
  return read_pairs(hash, group + ":e", group, [&](const std::string& name, const std::string& value) {
    if (name.size() > max_election_bytes) return true;  // No election has it.
    if (auto lead = lead_of(value))
      out.leads.insert_or_assign(name, *std::move(lead));
    else
      out.unreadable.insert_or_assign(name, unreadable(group, name, value));
    return true;
  });
}

/// Zero: the group is not founded.
std::optional<std::uint64_t> marker_of(const std::string& text) {
  if (text.empty()) return 0;
  Words words(text);
  const bool known = words.word() == std::to_string(group_format_version);
  const auto marker = words.number<std::uint64_t>(1, any);
  return known && words.all_right() ? std::optional(marker) : std::nullopt;
}

/// Of numbers that a script says of what it was given, from 1 on.
template <class Change>
std::optional<std::vector<std::string>> names_of(const Reply& numbers, const std::vector<Change>& of) {
  if (numbers.kind != Reply::Kind::list) return std::nullopt;
  std::vector<std::string> out;
  for (const auto& number : numbers.list) {
    const auto at = static_cast<std::size_t>(number.integer) - 1;
    if (number.kind != Reply::Kind::integer || at >= of.size()) return std::nullopt;
    out.push_back(of[at].election);
  }
  return out;
}

bool is_list(const Reply& reply, std::size_t size) {
  return reply.kind == Reply::Kind::list && reply.list.size() == size;
}

/// 0 or 1.
std::optional<bool> flag_of(const Reply& reply) {
  if (reply.kind != Reply::Kind::integer || reply.integer < 0 || reply.integer > 1) return std::nullopt;
  return reply.integer == 1;
}

}  // namespace

// ---- what scripts are given ----

std::vector<std::string> look_arguments(const std::string& cursor, const Names& joined) {
  std::vector<std::string> out;
  add_cursor(out, cursor);
  add_names(out, cursor.empty() ? joined : Names());
  out.emplace_back(cursor.empty() ? "1" : "0");
  return out;
}

std::vector<std::string> open_arguments(SessionId id, const Session& session, std::uint64_t fresh,
                                        const Names& joined) {
  std::vector<std::string> out{text_of(id), std::to_string(session.record.beat), text_of(session), marker_text(fresh)};
  add_names(out, joined);
  return out;
}

std::vector<std::string> commit_arguments(const Commit& commit, bool any_marker, bool claims) {
  std::vector<std::string> out{any_marker ? std::string() : marker_text(commit.marker), text_of(commit.session),
                               std::to_string(commit.next.record.beat), text_of(commit.next), text_of(commit.at_least)};
  add_cursor(out, commit.cursor);
  add_beats(out, commit.beats);
  out.push_back(std::to_string(claims ? 2 * commit.claims.size() : 0));
  if (claims)
    for (const auto& [election, expected] : commit.claims) {
      out.push_back(election);
      out.push_back(expected ? text_of(*expected) : std::string());
    }
  out.push_back(std::to_string(3 * commit.releases.size()));
  for (const auto& [election, token, heir] : commit.releases) {
    out.push_back(election);
    out.push_back(text_of(token));
    out.push_back(text_of(heir));
  }
  out.push_back(std::to_string(commit.ended.size()));
  for (const auto id : commit.ended) out.push_back(text_of(id));
  return out;
}

std::vector<std::string> end_arguments(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat) {
  std::vector<std::string> out{text_of(id), std::to_string(new_beat)};
  add_beats(out, beats);
  return out;
}

std::vector<std::string> sweep_arguments(const std::string& beat, const SweepPass& pass) {
  std::vector<std::string> out{beat, pass.at, std::to_string(pass.sessions.size())};
  out.insert(out.end(), pass.sessions.begin(), pass.sessions.end());
  return out;
}

std::vector<std::string> retire_arguments(const std::map<std::string, Token>& leads) {
  std::vector<std::string> out{std::to_string(3 * leads.size())};
  for (const auto& [election, token] : leads) {
    out.push_back(election);
    out.push_back(text_of(token));
    out.push_back(text_of(Token{token.value + 1}));
  }
  return out;
}

std::vector<std::string> step_down_arguments(const std::string& election, const StepDown& request,
                                             const std::string& beat) {
  const auto by = request.by.substr(0, max_candidate_bytes);
  return {election, text_of(request.token), std::to_string(by.size()) + " " + by + request.why.substr(0, max_why_bytes),
          beat};
}

// ---- what scripts answer ----

Result<Look> look_of(const Reply& reply, const std::string& group) {
  if (!is_list(reply, 6)) return no_answer(group);
  const auto &time = reply.list[0], &marker = reply.list[1], &sessions = reply.list[2], &whole = reply.list[3],
             &leads = reply.list[4], &cursor = reply.list[5];
  const auto now_ms = exact<std::int64_t>(time.text);
  const auto is_whole = flag_of(whole);
  if (!now_ms || *now_ms < 0 || *now_ms > most_unix_ms || marker.kind != Reply::Kind::text || !is_whole ||
      cursor.kind != Reply::Kind::text)
    return no_answer(group);
  const auto number = marker_of(marker.text);
  if (!number) return spoilt(group + ":s", "");
  Look out;
  out.now_ms = *now_ms;
  out.marker = *number;
  out.whole = *is_whole;
  out.cursor = cursor.text;
  if (auto error = read_sessions(sessions, group, out)) return *std::move(error);
  if (auto error = read_leads(leads, group, out)) return *std::move(error);
  return out;
}

Result<Page> page_of(const Reply& reply, const std::string& group) {
  if (!is_list(reply, 2) || reply.list[0].kind != Reply::Kind::text) return no_answer(group);
  auto look = look_of(reply.list[1], group);
  if (!look) return std::move(look).error();
  return Page{reply.list[0].text, *std::move(look)};
}

void add_leads(Look& look, Look others) {
  std::erase_if(others.leads, [&](const auto& one) { return look.unreadable.contains(one.first); });
  std::erase_if(others.unreadable, [&](const auto& one) { return look.leads.contains(one.first); });
  look.leads.merge(others.leads);
  look.unreadable.merge(others.unreadable);
}

Result<OpenReply> opened_of(const Reply& reply, const std::string& group) {
  if (!is_list(reply, 3)) return no_answer(group);
  const auto granted = flag_of(reply.list[0]), founded = flag_of(reply.list[1]);
  if (!granted || !founded) return no_answer(group);
  auto look = look_of(reply.list[2], group);
  if (!look) return std::move(look).error();
  OpenReply out{.committed = {}, .founded = *founded};
  out.committed.granted = *granted;
  out.committed.look = *std::move(look);
  return out;
}

Result<Committed> committed_of(const Reply& reply, const Commit& commit, const std::string& group) {
  if (!is_list(reply, 5)) return no_answer(group);
  const auto granted = flag_of(reply.list[0]);
  const auto token = exact<std::uint64_t>(reply.list[1].text);
  auto claimed = names_of(reply.list[2], commit.claims), released = names_of(reply.list[3], commit.releases);
  if (!granted || !token || !claimed || !released) return no_answer(group);
  auto look = look_of(reply.list[4], group);
  if (!look) return std::move(look).error();
  Committed out;
  out.granted = *granted;
  out.token = {*token};
  out.claimed = *std::move(claimed);
  out.released = *std::move(released);
  out.look = *std::move(look);
  out.look.all_sessions = !*granted;
  return out;
}

Result<Swept> swept_of(const Reply& reply, const std::string& group) {
  if (!is_list(reply, 3) || reply.list[0].kind != Reply::Kind::text || reply.list[1].kind != Reply::Kind::integer ||
      reply.list[1].integer < 0 || reply.list[1].integer > INT32_MAX || reply.list[2].kind != Reply::Kind::list)
    return no_answer(group);
  Swept out{.removed = static_cast<int>(reply.list[1].integer), .rest = {reply.list[0].text, {}}};
  for (const auto& id : reply.list[2].list) out.rest.sessions.push_back(id.text);
  return out;
}

Result<std::set<std::string>> retired_of(const Reply& reply, const std::map<std::string, Token>& leads,
                                         const std::string& group) {
  std::vector<Claim> asked;
  asked.reserve(leads.size());
  for (const auto& [election, token] : leads) asked.push_back({election, token});
  const auto names = is_list(reply, 2) ? names_of(reply.list[1], asked) : std::nullopt;
  if (!names) return no_answer(group);
  return std::set(names->begin(), names->end());
}

Result<int> count_of(const Reply& reply, const std::string& group) {
  if (!is_list(reply, 2) || reply.list[1].kind != Reply::Kind::integer || reply.list[1].integer < 0 ||
      reply.list[1].integer > INT32_MAX)
    return no_answer(group);
  return static_cast<int>(reply.list[1].integer);
}

// ---- pushes ----

bool is_news(std::string_view message, std::string_view cursor) {
  const auto told = place_of(Words(message).word()), seen = place_of(Words(cursor).word());
  return !told || !seen || *told > *seen;
}

std::optional<Release> release_in(std::string_view message) {
  Words words(message);
  if (!place_of(words.word()) || words.word() != "released") return std::nullopt;
  Release out;
  out.token.value = words.number();
  out.heir = words.id_or_dash();
  out.election = words.rest(max_election_bytes);
  if (!words.all_right() || out.election.empty()) return std::nullopt;
  return out;
}

}  // namespace tenure::redis
