// SPDX-License-Identifier: Apache-2.0
// The rules of README.md: what a look or an answer means, and what is written next.
#include "lock_table/lock_table_decisions.hpp"

#include <algorithm>
#include <limits>
#include <tenure/kit/who.hpp>

namespace tenure {
namespace {

using Duration = Clock::Duration;
using std::chrono::milliseconds;

/// The greatest that is claimed. PostgreSQL's bigint and Redis' integers end soon after. A record with a greater one
/// cannot be read. Else whoever saw it would claim above it, and nothing could mend that but a restart of all of them.
constexpr std::uint64_t greatest_token = std::numeric_limits<std::int64_t>::max() - 2;

/// A store's clock beyond this (the year 287396) is broken, and would use up the tokens.
constexpr std::int64_t greatest_unix_ms = std::int64_t{1} << 53;

/// Unanswered claims of an hour at ten a second would fill more; forgetting one costs a term, never safety.
constexpr std::size_t most_sent = 1024;

/// A bound this tight is not worth another read.
constexpr Duration tight = milliseconds(5);
constexpr Duration after_renewal = milliseconds(3);
constexpr int most_timed_looks = 8;

bool credible(const Record& record) {
  return record.token.value <= greatest_token && record.term > Duration::zero() && record.term <= max_term &&
         record.asked >= Duration::zero() && record.asked.count() <= std::numeric_limits<Clock::rep>::max() / 2 &&
         read_who(record.who);
}

std::optional<Version> version_of(const Read& read) {
  if (!read.record) return std::nullopt;
  return Version{read.record->token, read.record->beat};
}

}  // namespace

LockTableDecisions::LockTableDecisions(std::string who, const Timing& timing) : who_(std::move(who)), timing_(timing) {}

void LockTableDecisions::saw(const Read& found, Time at) {
  auto read = found;
  if (read.record && !credible(*read.record)) read.unreadable = true;
  const bool fresh = !sighting_ || version_of(sighting_->read) != version_of(read) || unreadable() != read.unreadable;
  const bool fell_before = sighting_ && sighting_->fell;
  const bool first_of_all = !sighting_;
  sighting_ = Sighting{read, fresh ? at : sighting_->first, false, fresh ? Time::max() : sighting_->told_end};
  if (open_claim_ && !matches(open_claim_->expected, sighting_->read.record)) open_claim_.reset();
  timed_look_.reset();
  judge_fall(fell_before);
  if (!read.record || read.unreadable) return;

  highest_ = std::max(highest_, read.record->token);
  longest_seen_ = std::max(longest_seen_, read.record->term);
  if (const auto term = read.record->term; first_of_all && read.now_ms >= read.record->written_ms)
    sighting_->told_end = at + term - age(*read.record, read.now_ms, term).value_or(term);
  if (fresh) time_lease(read, at);
  if (!read.record->released && !read.same_clock && !sent(*read.record)) time_look(read, at, fresh);
}

/// A record is never deleted and its token never falls, unless the store lost data.
void LockTableDecisions::judge_fall(bool fell_before) {
  const auto& read = sighting_->read;
  if (read.unreadable) return;
  sighting_->fell = read.record ? read.record->token < highest_ : highest_ > Token{};
  if (!sighting_->fell || fell_before) return;
  alarm_ = Error{Fault::corrupt,
                 "the store lost data: token " + std::to_string(highest_.value) + " was there, and now " +
                     (read.record ? "token " + std::to_string(read.record->token.value) : "no record at all") +
                     "; restore it, and until then fence every write with the token"};
}

void LockTableDecisions::time_lease(const Read& read, Time at) {
  const auto& record = *read.record;
  if (read.same_clock && at.time_since_epoch() >= record.asked) {
    bound_.forget();
    lease_end_ = Time(record.asked) + longest();
    return;
  }
  if (bound_.saw(record.who, record.asked, at, age(*read.record, read.now_ms, longest()).value_or(longest()), longest(),
                 timing_.clock_rate_error))
    timed_looks_ = 0;
  lease_end_ = bound_.end(longest());
}

/// A read soon after a renewal makes the bound tight, and the store's clock says when renewals are due. Until it is
/// tight the next one is looked for; then the last one before the lease's end, so that one read per (term - renew)
/// keeps it so.
void LockTableDecisions::time_look(const Read& read, Time at, bool fresh) {
  if (!bound_) return;
  const auto since = age(*read.record, read.now_ms, longest());
  const bool is_tight = bound_.excess() <= tight;
  if (is_tight) timed_looks_ = 0;
  if (!since || (is_tight && !fresh) || timed_looks_ >= most_timed_looks) return;
  auto due = Duration::zero();
  if (is_tight)
    due = (lease_end_ - timing_.renew / 2 - at + *since) / timing_.renew * timing_.renew - *since;
  else if (fresh)
    due = timing_.renew - *since;
  const auto look = at + std::max(due, Duration::zero()) + after_renewal * (fresh ? 1 : 1 << timed_looks_);
  if (look >= lease_end_) return;
  if (!is_tight) ++timed_looks_;
  timed_look_ = look;
}

Clock::Time LockTableDecisions::earliest() const {
  if (!sighting_) return Time::min();
  const auto& read = sighting_->read;
  const auto observed = sighting_->first + longest();
  if (read.unreadable || (sighting_->fell && (read.record || read.absence_certain))) return observed;
  if (!read.record || read.record->released) return Time::min();
  if (const auto* ours = sent(*read.record)) return ours->unproven ? observed : Time::min();
  return lease_end_;
}

Clock::Time LockTableDecisions::next_look() const {
  if (tenure_) return Time::max();
  return timed_look_ ? std::min(*timed_look_, earliest()) : earliest();
}

std::optional<Clock::Time> LockTableDecisions::lease_end() const {
  if (!sighting_ || !sighting_->read.record || sighting_->read.unreadable || sighting_->read.record->released)
    return std::nullopt;
  return sighting_->fell ? std::max(lease_end_, sighting_->first + longest()) : lease_end_;
}

std::optional<Incumbent> LockTableDecisions::incumbent(Time now) const {
  const auto end = lease_end();
  if (!end) return std::nullopt;
  const auto& record = *sighting_->read.record;
  return incumbent_of(record.who, record.token, std::max(*end - now, Duration::zero()));
}

std::optional<Incumbent> LockTableDecisions::watched(Time now) const {
  auto who = incumbent(now);
  if (who) who->remaining = std::clamp(sighting_->told_end - now, Duration::zero(), who->remaining);
  return who;
}

/// That clock may have been stepped. So where the lease is not over by ours, the next renewal is looked for.
Clock::Time LockTableDecisions::watch_again(Time now) const {
  const auto end = lease_end();
  if (!end || *end <= now) return Time::max();
  return std::min(*end, sighting_->told_end > now ? sighting_->told_end : now + timing_.renew);
}

Denied LockTableDecisions::denied(Time now) const {
  if (!sighting_ || !sighting_->read.record || sent(*sighting_->read.record)) return {};
  return {incumbent(now)};
}

std::optional<Version> LockTableDecisions::version() const {
  return sighting_ ? version_of(sighting_->read) : std::nullopt;
}

bool LockTableDecisions::copied() const {
  return sighting_ && sighting_->read.record && !sighting_->read.unreadable && sighting_->read.record->who == who_ &&
         !sent(*sighting_->read.record);
}

std::optional<LockTableDecisions::Attempt> LockTableDecisions::claim(Time asked, Time now, std::uint64_t beat) {
  tenure_.reset();  // Whoever asks for a new tenure has given up the old one.
  if (!sighting_ || (now < earliest() && next_token())) return std::nullopt;
  const auto& record = sighting_->read.record;
  if (!record) return take_over(std::nullopt, asked, beat);
  return take_over(Expected{record->token, sent(*record) ? sent_beats() : std::vector{record->beat}}, asked, beat);
}

/// A beat is drawn anew at each write. So a version that was once released stays released, and the swap of a late
/// notice finds nothing. The swap also demands that the record is released, since whoever can read a record may be able
/// to forge a notice of it. The sighting stays: it is about what we read ourselves.
std::optional<LockTableDecisions::Attempt> LockTableDecisions::succession(const Version& released, Time asked,
                                                                          std::uint64_t beat) {
  if (!sighting_ || !sighting_->read.record || sighting_->read.unreadable || sighting_->fell) return std::nullopt;
  const auto& record = *sighting_->read.record;
  // A claim that was not answered must not be forgotten for the sake of a notice.
  if (record.token != released.token || record.released || sent(record) || open_claim_) return std::nullopt;
  tenure_.reset();
  return take_over(Expected{released.token, {released.beat}, true}, asked, beat);
}

std::optional<LockTableDecisions::Attempt> LockTableDecisions::take_over(std::optional<Expected> expected, Time asked,
                                                                         std::uint64_t beat) {
  const auto token = next_token();
  if (!token) {
    alarm_ = Error{Fault::corrupt,
                   "the store's token is at the end of its range, and no greater one can follow: give "
                   "the record a smaller one, or begin an election of another name"};
    return std::nullopt;
  }
  // Where a record can be lost, another one may have come and gone between two reads of ours. Only our own record that
  // stood for a term shows that there is none.
  auto next = written(*token, asked, beat, timing_.term);
  if (!expected && !sighting_->read.absence_certain) return send(std::nullopt, std::move(next), true);
  open_claim_ = OpenClaim{expected, *token};
  return send(std::move(expected), std::move(next));
}

std::optional<LockTableDecisions::Attempt> LockTableDecisions::renewal(Token token, Time asked, std::uint64_t beat) {
  if (!tenure_ || tenure_->token != token || asked >= tenure_->deadline) return std::nullopt;
  return send(Expected{token, sent_beats()}, written(token, asked, beat, timing_.term));
}

/// An attempt that expects a version finds nothing once that version has been replaced. So an unanswered claim is ended
/// by a write that replaces the same version, as the claim would have done, and gives it back at once.
std::optional<LockTableDecisions::Attempt> LockTableDecisions::surrender(Time asked, std::uint64_t beat) {
  if (const auto* ours = incumbent(asked) ? sent(*sighting_->read.record) : nullptr) {
    if (ours->unproven) return std::nullopt;  // Nobody may take over at once what was not ours yet.
    const auto& stands = *sighting_->read.record;
    return send(Expected{stands.token, sent_beats()}, written(stands.token, asked, beat, stands.term, true));
  }
  if (open_claim_) return send(open_claim_->expected, written(open_claim_->token, asked, beat, timing_.term, true));
  return std::nullopt;
}

Answer LockTableDecisions::claimed(const Result<Swap>& result, Time at) {
  if (auto error = no_answer(result, at)) return Unknown{std::move(*error)};
  if (!result->applied) return denied(at);
  if (sent(attempt_.next)->unproven) return denied(at);
  const auto& next = attempt_.next;
  const auto deadline = timing_.deadline(Time(next.asked));
  if (at >= deadline)
    return Unknown{{Fault::timed_out, "the grant came after its own deadline, and counts for nothing"}};
  const auto token = next.token;
  highest_ = std::max(highest_, token);
  tenure_ = Tenure{token, deadline};
  open_claim_.reset();
  sent_ = {{attempt_.next.beat, false}};
  return Granted{token};
}

Answer LockTableDecisions::renewed(const Result<Swap>& result, Time at) {
  if (auto error = no_answer(result, at)) return Unknown{std::move(*error)};
  if (!result->applied) {
    const auto& stands = sighting_->read.record;
    if (stands && !stands->released && stands->beat == attempt_.next.beat)
      return Unknown{{Fault::unreachable, "the store refused a renewal that stands there: it was sent twice below us"}};
    tenure_.reset();
    return denied(at);
  }
  // The deadline that stood when it was asked decides. By its own deadline a renewal that took a term would revive a
  // lapsed tenure.
  if (!tenure_ || at >= tenure_->deadline)
    return Unknown{
        {Fault::timed_out, "the renewal came after the deadline that it was to move, and counts for nothing"}};
  tenure_->deadline = timing_.deadline(Time(attempt_.next.asked));
  sent_ = {{attempt_.next.beat, false}};
  if (const auto& step_down = result->found.step_down; step_down && step_down->token == tenure_->token)
    return StepDownRequested{step_down->token, step_down->by, step_down->why};
  return Granted{tenure_->token};
}

std::optional<Error> LockTableDecisions::surrendered(const Result<Swap>& result, Time at) {
  if (auto error = no_answer(result, at)) return error;
  tenure_.reset();
  if (!result->applied) return std::nullopt;
  open_claim_.reset();
  sent_ = {{attempt_.next.beat, false}};
  return std::nullopt;
}

/// Why the store's answer tells nothing of the attempt. Otherwise it was seen.
std::optional<Error> LockTableDecisions::no_answer(const Result<Swap>& result, Time at) {
  if (!result) return result.error();
  saw(result->found, at);
  if (result->applied) return std::nullopt;
  sighting_->first = at;
  const auto& stands = sighting_->read.record;
  // A store that knows of a holder's death shows its tenure as released, under the version that stands. Others may
  // claim at once, so such a refusal is an answer.
  const bool ended = stands && stands->released && stands->token == attempt_.next.token;
  if (ended || !matches(attempt_.expected, stands)) return std::nullopt;
  return Error{Fault::unreachable, "the store refused a write although what it was to replace stands there"};
}

std::optional<Token> LockTableDecisions::next_token() const {
  const auto& read = sighting_->read;
  auto least = highest_.value;
  if (read.record) least = std::max(least, read.record->token.value);
  if (least >= greatest_token) return std::nullopt;
  ++least;
  if (read.now_ms > 0 && read.now_ms < greatest_unix_ms)
    least = std::max(least, static_cast<std::uint64_t>(read.now_ms));
  return Token{least};
}

Record LockTableDecisions::written(Token token, Time asked, std::uint64_t beat, Duration term, bool released) const {
  return {
      .token = token, .beat = beat, .who = who_, .released = released, .term = term, .asked = asked.time_since_epoch()};
}

LockTableDecisions::Attempt LockTableDecisions::send(std::optional<Expected> expected, Record next, bool unproven) {
  if (sent_.size() >= most_sent) sent_.erase(sent_.begin() + (tenure_ ? 1 : 0));  // The first one is what stands there.
  sent_.push_back({next.beat, unproven});
  attempt_ = {std::move(expected), std::move(next)};
  return attempt_;
}

/// The beat of a record that we wrote ourselves.
const LockTableDecisions::Beat* LockTableDecisions::sent(const Record& record) const {
  const auto found = std::find_if(sent_.begin(), sent_.end(), [&](const Beat& b) { return b.value == record.beat; });
  return found == sent_.end() ? nullptr : &*found;
}

std::vector<std::uint64_t> LockTableDecisions::sent_beats() const {
  std::vector<std::uint64_t> out;
  for (const auto& beat : sent_) out.push_back(beat.value);
  return out;
}

}  // namespace tenure
