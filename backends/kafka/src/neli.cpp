// SPDX-License-Identifier: Apache-2.0
// The rules of README.md: how each fact changes the state, and which effects follow.
#include "neli.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/who.hpp>

namespace tenure::kafka {
namespace {

/// Member ids begin with the client id, and the range assignor gives partition 0 to the lowest. So a consumer that is
/// in the group by mistake does not get it. Among candidates the one that joined at a lower token, or earlier, keeps
/// it.
std::string rank(Token token, std::int64_t unix_ms, const std::string& incarnation) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%020llu.%013lld.", static_cast<unsigned long long>(token.value),
                static_cast<long long>(unix_ms));
  return std::string(candidate_prefix) + digits + incarnation;
}

bool same_leader(const Incumbent& a, const Incumbent& b) {
  return a.token == b.token && a.incarnation == b.incarnation && a.name == b.name && a.address == b.address &&
         (a.remaining > Clock::Duration::zero()) == (b.remaining > Clock::Duration::zero());
}

}  // namespace

Neli::Neli(Config config)
    : config_(std::move(config)),
      self_(incumbent_of(who_text({config_.name, config_.address}, config_.incarnation), {}, {})),
      view_(config_.incarnation, config_.lease, config_.first_claim_waits, config_.highest) {}

std::vector<Effect> Neli::on(const Fact& fact, Time now, std::int64_t unix_ms) {
  now_ = now;
  unix_ms_ = unix_ms;
  alarm_ = Time::max();
  judge_tenure();  // before any answer: a lapsed tenure is never revived
  std::visit([this](const auto& f) { take(f); }, fact);
  judge_tenure();
  judge_idle();
  serve_ranking();
  serve_member();
  serve_call();
  judge_useless();
  serve_requests();
  serve_leaderless();
  serve_observer();
  return std::exchange(effects_, {});
}

// ---- facts ----

void Neli::take(const fact::Called& call) {
  call_ = call;
  called_at_ = now_;
  observation_before_call_ = observation_;
  if (call.verb == Verb::observe || call.verb == Verb::await_change) observe_until_ = now_ + config_.lease;
  if (call.verb == Verb::observe) return;
  last_asked_ = now_;
  if (call.verb != Verb::acquire) return;
  if (tenure_) end_tenure();  // the caller leads no more, or it would not ask
  member_.left();
  if (std::exchange(campaigning_, true)) return;
  rank_after_ = observation_;
  check_topic_ = true;  // From here on a missing one may be created.
}

void Neli::take(const fact::Abandoned& gone) {
  if (tenure_ && tenure_->granted_by == gone.id) end_tenure();
  if (!call_ || call_->id != gone.id) return;
  const auto verb = call_->verb;
  if (verb != Verb::observe) last_asked_ = now_;
  call_.reset();
  if (verb != Verb::release) return;
  leave();
  member_.left();
  leave_error_.reset();  // Nobody is left to hear it.
}

void Neli::take(const fact::Broken& broken) {
  const bool any = broken.handle == any_handle;
  if (any) {  // Nobody may be reading what we wait for.
    observing_ = requesting_ = false;
    owner_search_.lost();
  }
  if (any && !member_) emit(effect::Drop{any_handle});  // Perhaps that failed.
  if (member_.take(broken)) drop_member(member_.reopen_pause);
}

void Neli::take(const fact::Assigned& assigned) {
  if (!member_.is(assigned.handle)) return;
  if (member_.evicted(assigned.member)) take(fact::Revoked{assigned.handle, true});
  if (!member_) return;
  if (member_->outstanding) return drop_member();  // no client does so: the commit could go out under this generation
  // In a generation that it did not own partition 0 in, or never heard of, somebody else may have led.
  if (!owner_ || assigned.generation != member_->generation + 1) view_.end_absence();
  member_.take_place(assigned.generation, now_, assigned.member);
  owner_ = assigned.owner;
  if (!owner_) made_room_ = false;
  believed_ = false;
  // Without a tenure somebody else may have written since.
  unreleased_ = tenure_ ? std::optional(tenure_->token) : std::nullopt;
  emit(effect::Assign{assigned.handle});
}

void Neli::take(const fact::Revoked& revoked) {
  if (!member_.is(revoked.handle)) return;
  if (revoked.lost && !tenure_) return drop_member();  // the old rank would take partition 0 from a healthy successor
  member_.lose_place(revoked.lost, now_);
}

void Neli::take(const fact::Committed& answer) {
  const auto asked = member_.answered(answer, now_);
  if (!asked) return;
  const bool nonce = asked->purpose == Purpose::nonce;
  if (answer.outcome == Outcome::accepted && asked->purpose != Purpose::claim && !nonce) member_.gave();
  if (answer.outcome == Outcome::failed && !nonce) member_->doubtful = true;
  switch (asked->purpose) {
    case Purpose::nonce: member_.proved(answer, now_); break;
    case Purpose::claim: claim_answered(*asked, answer); break;
    case Purpose::renewal: renewal_answered(*asked, answer); break;
    case Purpose::release:
      if (answer.outcome != Outcome::accepted) leave_error_ = answer.error;
      unreleased_.reset();
      return leave();
  }
  // The topic is gone, or has one partition. The next observation finds out which, and says so.
  if (answer.outcome == Outcome::unknown_topic) check_topic_ = true;
  if (answer.outcome == Outcome::unknown_topic && nonce && owner()) return drop_member(member_.reopen_pause);
  // Rule 23. A copy of an old commit may be handled after a newer one. Who saw the old one long ago, and the newer one
  // never, would then take its lease for over. No copy of this handle's is handled in a generation that its member id
  // is not in.
  if (!answer.again || nonce) return;
  member_.keep_rank();
  drop_member();
}

void Neli::claim_answered(const Sent& asked, const fact::Committed& answer) {
  believed_ = false;
  member_->try_again = now_ + member_.prove_pause;
  if (answer.outcome == Outcome::accepted) view_.acknowledged(asked.token);
  const bool awaited = call_ && call_->id == asked.call;
  const auto deadline = deadline_of(asked);
  if (answer.outcome == Outcome::accepted && awaited && now_ < deadline) {
    member_->try_again = now_;
    member_->late_claim = false;
    member_.gave();
    told_useless_ = false;
    made_room_ = false;
    tenure_ = Tenure{.token = asked.token, .deadline = deadline, .granted_by = asked.call, .step_down = {}};
    request_at_ = now_;
    return reply(Granted{asked.token});
  }
  // Once is enough. Who is always so late keeps the others out by its records, and never leads.
  const bool late = answer.outcome == Outcome::accepted;
  if (!std::exchange(member_->late_claim, late) && late) member_.gave();
  if (answer.outcome == Outcome::failed) member_.trouble = answer.error;
  if (!awaited) return;
  if (answer.outcome == Outcome::accepted)
    reply(Unknown{
        {Fault::timed_out, "the claim is not used, because its lease had nearly run out when it was acknowledged"}});
  else
    reply(Unknown{answer.error});
}

/// Its tenure still is: who loses one drops the handle whose commit is outstanding.
void Neli::renewal_answered(const Sent& asked, const fact::Committed& answer) {
  const bool awaited = call_ && call_->id == asked.call;
  if (answer.outcome != Outcome::accepted) {
    member_->try_again = now_ + retry_pause;
    if (awaited) reply(Unknown{answer.error});
    return;
  }
  tenure_->deadline = deadline_of(asked);  // One is outstanding at a time, so it rises.
  if (!awaited) return;
  if (const auto& request = tenure_->step_down)
    reply(StepDownRequested{asked.token, request->by, request->why});
  else
    reply(Granted{asked.token});
}

void Neli::take(const fact::MemberRead& read) {
  if (!member_.was_read(read, now_)) return;
  const auto& reading = *read.result;
  if (!member_.believes(reading.nonce, now_)) {
    if (member_.tells_of_stale(now_)) emit(effect::Tell{Level::warning, std::string(not_believed)});
    return;
  }
  member_->read_again = now_ + config_.observe_every;
  tell(report_of(0, reading.record, view_.believed(reading.record, now_, member_->assigned_at)));
  believed_ = true;
  judge_rank();
}

/// Rule 24. The rank is of when the handle was opened, and another one that was opened later may have joined sooner.
/// Once, since whoever is dealt partition 0 again is alone with it.
void Neli::judge_rank() {
  const bool fresh = now_ < *member_->joined_at + config_.lease / 2;
  if (tenure_ || !fresh || made_room_ || !view_.claimed_since(ranked_, now_)) return;
  made_room_ = true;
  drop_member();
}

void Neli::take(const fact::Observed& observed) {
  if (!observing_ || observed.id != observation_) return;
  observing_ = false;
  observed_ = observed.id;
  if (!observed.result) {
    observer_trouble_ = observed.result.error();
    return;
  }
  if (checks_ && (!campaigning_ || observed.id > rank_after_)) check_topic_ = false;
  observer_trouble_.reset();
  const auto& read = *observed.result;
  if (read) view_.end_absence();
  // What a read with the nonce showed is the truth of this generation, also if the store lost what came before.
  if (!owner() || !believed_) tell(report_of(0, read, view_.observed(read, now_)));
  if (!campaigning_ || member_ || member_.leaving() || observed.id <= rank_after_) return;
  open_member();
  if (member_) member_->founder = observed.new_group;
}

void Neli::take(const fact::Requested& requested) {
  requesting_ = false;
  request_at_ = now_ + requests_every;
  if (!requested.result) {
    const auto& error = requested.result.error();
    if (error.fault == Fault::forbidden && std::exchange(requests_trouble_, error.message) != error.message)
      emit(effect::Tell{Level::warning, "requests to step down cannot be read. " + error.message});
    return;
  }
  requests_trouble_.clear();
  const auto& found = *requested.result;
  if (!found || !tenure_ || token_of(found) != tenure_->token) return;
  const auto request = decode_step_down(tenure_->token, found->metadata);
  tenure_->step_down = request.value_or(StepDown{tenure_->token, "somebody", "no reason that could be read"});
}

void Neli::take(const fact::OwnersFound& found) {
  if (auto message = owner_search_.answered(found.result, {0})) emit(effect::Tell{Level::warning, std::move(*message)});
}

void Neli::take(const fact::Closing&) {
  campaigning_ = false;
  call_.reset();
  tenure_.reset();
  if (member_) drop_member();
}

// ---- what is due ----

void Neli::judge_tenure() {
  if (tenure_ && due(tenure_->deadline)) end_tenure();
}

/// A candidate that nobody asks must not keep partition 0 from the others.
void Neli::judge_idle() {
  const bool called = call_ && call_->verb != Verb::observe;
  if (!campaigning_ || called || tenure_ || !due(last_asked_ + config_.lease)) return;
  campaigning_ = false;
  if (!member_) return;
  emit(effect::Tell{Level::info, "left the group, because no call came for a whole lease"});
  drop_member();
}

/// Rule 22. Another candidate may have the right that this one lacks, or a way to the coordinator.
void Neli::judge_useless() {
  member_.watch(owner() && !tenure_ && (!believed_ || member_->late_claim || member_.failing(config_.lease, now_)),
                now_);
  if (!due(member_.useless_at(config_.lease))) return;
  if (!std::exchange(told_useless_, true))
    emit(effect::Tell{
        Level::warning,
        "left the group, because this owner of partition 0 could not claim the lead for a "
        "whole lease, and another candidate may be able to. It joins again. " +
            (member_.trouble ? member_.trouble->message
             : member_->late_claim
                 ? "Its claims were acknowledged after Timing::call was over: the brokers are slow, or too "
                   "far away for it; raise it, or take a preset with a longer term"
                 : "The coordinator answered nothing that it asked")});
  drop_member();
}

void Neli::serve_ranking() {
  if (!campaigning_ || member_ || member_.leaving() || !due(member_.may_open_at)) return;
  // An observation opens the member, unless its rank is known; here it is only made sure that one comes.
  if (tenure_ && member_.has_kept_rank())
    open_member();
  else if (!observing_ && observation_ <= rank_after_)
    observe_at_ = std::min(observe_at_, now_);
}

void Neli::serve_member() {
  if (!member_) return;
  // The coordinator may handle a doubtful commit after a later claim of ours, and the next leader would read the old
  // token. A member id that does not join again is in no later generation.
  if ((member_->doubtful && !tenure_) || due(member_.drop_at(tenure_.has_value()))) return drop_member();
  // Rule 25. Another claim in this generation would come before the end of a transaction that is still on its way. A
  // member that joins anew, with nothing changed, gets the same generation again.
  if (!tenure_ && member_.assigned() && lent_ == member_->generation) return drop_member();
  if (member_.drained()) emit(effect::Unassign{member_->number});
  if (owner()) serve_owner();
}

void Neli::serve_owner() {
  auto& m = *member_;
  if (tenure_ || m.outstanding || m.fenced || m.reading || !due(m.try_again)) return;
  if (call_ && call_->verb == Verb::release) return;
  if (!m.nonce_stands) return send_nonce();
  if (believed_ && due(claimable_at())) return;
  if (!due(m.read_again)) return;
  m.reading = next_id();
  emit(effect::ReadMember{*m.reading});
}

void Neli::serve_requests() {
  if (!tenure_ || !config_.remote_step_down || requesting_ || !due(request_at_)) return;
  requesting_ = true;
  emit(effect::ReadRequests{});
}

/// Nothing if, for as long as is known, no candidate leads.
std::optional<Neli::Time> Neli::led_until() const {
  if (tenure_) return tenure_->deadline;
  return view_.led_until();
}

/// A bystander that sees no leader for a lease looks for a consumer that keeps partition 0 from all candidates. One
/// that leads looks at once: that consumer may lead by another protocol.
void Neli::serve_leaderless() {
  const auto led = led_until();
  const bool displaced = tenure_ && bystander();
  if (!displaced && (!member_ || (led && !due(*led)))) return owner_search_.all_led();
  const auto since = displaced ? member_->assigned_at - view_.longest_lease() : led.value_or(now_);
  const auto at = owner_search_.ask_at(since, view_.longest_lease());
  if (!bystander() || !at || !due(*at)) return;
  owner_search_.asked(now_);
  check_topic_ = true;  // Perhaps it is gone.
  emit(effect::FindOwners{});
}

bool Neli::observing() const {
  if (tenure_ && member_) return false;
  if (call_ && (call_->verb == Verb::await_change || call_->verb == Verb::observe)) return true;
  return campaigning_ || now_ < observe_until_;
}

void Neli::serve_observer() {
  if (observing_ || !observing()) return;
  // The member's own reads are better, unless somebody asks for a fresh one.
  if (owner() && believed_ && !(call_ && call_->verb == Verb::observe)) return;
  if (campaigning_ && !member_ && !due(member_.may_open_at)) return;
  if (!due(observe_at_)) return;
  observing_ = true;
  observe_at_ = now_ + config_.observe_every;
  checks_ = check_topic_;
  emit(effect::Observe{++observation_, checks_, campaigning_});
}

/// A stranger that owned partition 0 may have led by a protocol of its own, and may not know yet that it lost it.
Neli::Time Neli::claimable_at() const {
  const auto at = view_.claimable_at(member_->assigned_at, member_->founder);
  return owner_search_.named_owner() ? std::max(at, member_->assigned_at + view_.longest_lease()) : at;
}

bool Neli::may_claim() const {
  return owner() && !tenure_ && believed_ && member_.may_send(now_) && now_ >= claimable_at();
}

// ---- the member ----

void Neli::open_member() {
  if (now_ < member_.may_open_at) return void(rank_after_ = observation_);
  ranked_ = highest();
  emit(member_.open(next_id(), rank(ranked_, unix_ms_, config_.incarnation), tenure_.has_value(), now_));
}

void Neli::drop_member(Duration pause) {
  emit(member_.drop());
  if (pause > Duration::zero()) member_.may_open_at = now_ + pause;
  owner_ = believed_ = false;
  view_.end_absence();
  unreleased_.reset();
  rank_after_ = observation_;
  observe_at_ = now_;
}

void Neli::leave() {
  campaigning_ = false;
  tenure_.reset();
  member_.leave(now_);
  if (member_) drop_member();
}

void Neli::end_tenure() {
  tenure_.reset();
  observe_at_ = now_;
  if (!member_) return;
  member_->read_again = now_;
  if (member_->outstanding || due(member_.drop_at(false))) drop_member();
}

void Neli::send(Purpose purpose, Token token, bool released) {
  const Record record{.released = released, .lease = config_.lease, .seq = ++seq_, .who = self_};
  member_->outstanding = Sent{next_id(), purpose, token, now_, call_ ? call_->id : 0};
  member_->reading.reset();  // A read that is under way may show what was there before.
  unreleased_ = token;
  emit(effect::SendCommit{member_->outstanding->id, 0, {static_cast<std::int64_t>(token.value), encode(record)}});
}

void Neli::send_nonce() {
  member_->nonce = config_.incarnation + "." + std::to_string(++nonces_);
  member_->read_again = now_;
  member_->outstanding = Sent{next_id(), Purpose::nonce, {}, now_, 0};
  emit(effect::SendCommit{member_->outstanding->id, nonce_partition, {1, member_->nonce}});
}

void Neli::claim() {
  const auto token = view_.next_token(tried_, unix_ms_);
  if (!token)
    return reply(Unknown{{Fault::corrupt,
                          "the record's offset is the largest possible, so no greater token can follow. Stop all "
                          "candidates and reset the group's offset of partition 0"}});
  tried_ = *token;
  send(Purpose::claim, tried_, false);
}

// ---- verbs ----

void Neli::serve_call() {
  if (!call_) return;
  switch (call_->verb) {
    case Verb::acquire: return serve_acquire();
    case Verb::renew: return serve_renew();
    case Verb::release: return serve_release();
    case Verb::observe: return serve_observe();
    case Verb::await_change: return serve_await();
  }
}

void Neli::serve_acquire() {
  if (owner()) return serve_acquire_as_owner();
  if (const auto error = trouble()) {
    // New trouble is told at once. The same trouble is told at the caller's limit, or its loop would be a hot one.
    if (told_ == error && !due(call_->by - reply_reserve)) return;
    told_ = error;
    if (bystander()) member_.trouble.reset();  // No answer of its own ends it. It is reported again while it lasts.
    return reply(Unknown{*error});
  }
  told_.reset();
  if (member_ && view_.was_read()) return reply(Denied{holder()});
  reply_when_late(Fault::unreachable, "the record could not be read in time");
}

void Neli::serve_acquire_as_owner() {
  if (may_claim()) return claim();
  if (believed_ && now_ < claimable_at()) return reply(Denied{holder()});
  if (due(call_->by - reply_reserve)) told_ = trouble();
  reply_when_late(Fault::timed_out, "the coordinator did not answer in time");
}

void Neli::serve_renew() {
  if (!tenure_ || tenure_->token != call_->token) return reply(Denied{holder()});
  const auto superseded = [&](const char* why) { reply(Unknown{{Fault::fenced, why}}); };
  if (!member_)
    return superseded("this candidate has left the group and not joined it again; the lease runs to its end");
  if (member_->fenced)
    return superseded("the group's coordinator accepts no commit of this member; the lease runs to its end");
  if (member_->lost && !member_->assigned)
    return superseded(
        "this member is out of the group: its session expired, or the coordinator evicted it; the lease runs to its "
        "end");
  if (bystander())
    return superseded(
        "partition 0 is not assigned to this member any more: another member has it, or this one lost READ on the "
        "topic; the lease runs to its end");
  if (!owner()) return reply_when_late(Fault::timed_out, "a rebalance of the group is under way");
  if (!member_->outstanding && due(member_->try_again)) return send(Purpose::renewal, tenure_->token, false);
  reply_when_late(Fault::timed_out, "the coordinator has not acknowledged the renewal");
}

void Neli::serve_release() {
  if (member_.leaving()) {
    if (due(member_.leave_by())) reply_released(std::exchange(leave_error_, std::nullopt));
    return;
  }
  const auto leave_now = [&] {
    leave();
    return member_.leaving() ? serve_release() : reply_released(std::nullopt);
  };
  const bool still_ours = owner() || (tenure_ && member_ && !bystander());
  if (!unreleased_ || !still_ours || member_->fenced) return leave_now();
  if (owner() && !member_->outstanding) return send(Purpose::release, *unreleased_, true);
  // The release waits in a rebalance for the assignment or the deadline, else for the answer to the outstanding commit.
  const auto patience = owner() ? called_at_ + member_.drain_limit : tenure_->deadline;
  if (!due(std::min(call_->by - reply_reserve, patience))) return;
  leave_error_ =
      Error{Fault::timed_out, "the release could not be written, so others wait until the lease has run out"};
  leave_now();
}

void Neli::serve_observe() {
  const auto tell = [this](Sight sight) {
    emit(effect::ReplySight{call_->id, std::move(sight)});
    call_.reset();
  };
  if (tenure_) return tell(sight());
  // Only a read that began after the call answers it.
  if (observed_ > observation_before_call_)
    return tell(observer_trouble_ ? Sight(Unknown{*observer_trouble_}) : sight());
  if (observation_ == observation_before_call_) observe_at_ = now_;
  if (due(call_->by - reply_reserve))
    tell(Unknown{trouble().value_or(Error{Fault::unreachable, "the record could not be read in time"})});
}

void Neli::serve_await() {
  const auto seen = sight();
  const auto changed = [&] {
    if (std::holds_alternative<Unknown>(seen)) return false;
    if (seen.index() != call_->seen.index()) return true;
    const auto* before = std::get_if<Incumbent>(&call_->seen);
    return before && !same_leader(*before, std::get<Incumbent>(seen));
  };
  const bool news = trouble() && trouble() != told_;
  if (may_claim() || changed() || news || due(call_->by)) {
    if (news) told_ = trouble();
    emit(effect::Wake{call_->id});
    last_asked_ = now_;
    call_.reset();
    return;
  }
  if (owner() && believed_) due(std::max(claimable_at(), member_->try_again));
  if (const auto* incumbent = std::get_if<Incumbent>(&seen); incumbent && incumbent->remaining > Duration::zero())
    due(now_ + incumbent->remaining);
}

// ---- answers ----

Sight Neli::sight() const {
  if (!tenure_) return view_.sight(now_);
  auto out = self_;
  out.token = tenure_->token;
  out.remaining = tenure_->deadline + config_.margin - now_;
  return out;
}

std::optional<Incumbent> Neli::holder() const {
  const auto seen = sight();
  if (const auto* incumbent = std::get_if<Incumbent>(&seen); incumbent && !tenure_) return *incumbent;
  return std::nullopt;
}

void Neli::reply(Answer answer) {
  emit(effect::Reply{call_->id, std::move(answer)});
  last_asked_ = now_;
  call_.reset();
}

void Neli::reply_when_late(Fault fault, std::string message) {
  if (due(call_->by - reply_reserve)) reply(Unknown{trouble().value_or(Error{fault, std::move(message)})});
}

void Neli::reply_released(std::optional<Error> error) {
  emit(effect::ReplyReleased{call_->id, std::move(error)});
  member_.left();
  call_.reset();
}

}  // namespace tenure::kafka
