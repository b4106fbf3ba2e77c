// SPDX-License-Identifier: Apache-2.0
// Follows the record from read to read: rules 4 to 7 and 9 of README.md.
#include "record_view.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/logging.hpp>

namespace tenure::kafka {
namespace {

constexpr auto at_once = Clock::Time::min();

/// What has a byte of zero is no text, and may be of any length.
std::string shown(const std::string& metadata) {
  return metadata.find('\0') != metadata.npos ? "with a byte of zero" : '"' + printable(metadata, 80) + '"';
}

}  // namespace

Token token_of(const std::optional<Commit>& commit) {
  return Token{commit && commit->offset > 0 ? static_cast<std::uint64_t>(commit->offset) : 0};
}

RecordView::RecordView(std::string incarnation, Duration lease, bool first_claim_waits, Token highest)
    : incarnation_(std::move(incarnation)),
      first_claim_waits_(first_claim_waits),
      highest_(highest),
      least_(highest),
      ever_seen_(highest.value > 0),
      longest_lease_(lease) {}

// ---- reads ----

RecordView::Finding RecordView::observed(const std::optional<Commit>& read, Time now) {
  if (seen_ && seen_->commit == read) {
    stale_since_.reset();
    return {};
  }
  if (!stale(read)) {
    stale_since_.reset();
    return see(read, now);
  }
  // No overtaken answer lasts for a lease: the store has lost a commit.
  if (!stale_since_) stale_since_ = now;
  return now >= *stale_since_ + longest_lease_ ? alarm(read, now) : Finding{};
}

RecordView::Finding RecordView::believed(const std::optional<Commit>& read, Time now, Time assigned_at) {
  if (read)
    absent_since_.reset();
  else if (!absent_since_)
    absent_since_ = assigned_at;
  return token_of(read) < least_ ? alarm(read, now) : see(read, now);
}

void RecordView::acknowledged(Token token) {
  highest_ = std::max(highest_, token);
  least_ = std::max(least_, token);
  ever_seen_ = true;
}

/// Older than what we know: an answer that was overtaken.
bool RecordView::stale(const std::optional<Commit>& read) const {
  if (token_of(read) != least_) return token_of(read) < least_;
  if (!seen_ || !seen_->record || !read || token_of(seen_->commit) != token_of(read)) return false;
  const auto record = decode(read->metadata);
  return record && record->who.incarnation == seen_->record->who.incarnation && record->seq < seen_->record->seq;
}

RecordView::Finding RecordView::alarm(const std::optional<Commit>& read, Time now) {
  stale_since_.reset();
  seen_.reset();
  const auto before = std::exchange(least_, Token{});  // From here on its renewals are followed.
  auto found = see(read, now);
  doubted_until_ = now + longest_lease_;
  if (!found.foreign) found.fell_from = before;  // else its writer, not the store, is to blame
  return found;
}

RecordView::Finding RecordView::see(const std::optional<Commit>& read, Time now) {
  const bool known = seen_ && seen_->commit == read;
  highest_ = std::max(highest_, token_of(read));
  ever_seen_ = ever_seen_ || read.has_value();
  if (known) return {};
  seen_ = Seen{.commit = read, .record = {}, .first_seen = now};
  if (!read) return {};
  if (read->offset > 0) seen_->record = decode(read->metadata);
  if (!seen_->record) return {.fell_from = {}, .foreign = true};
  least_ = std::max(least_, token_of(read));
  longest_lease_ = std::max(longest_lease_, seen_->record->lease);
  return {};
}

// ---- what follows ----

/// Released, or written by ourselves: nobody leads by it, or nobody would ask for another tenure.
bool RecordView::free() const {
  const auto& record = seen_->record;
  return record && (record->released || record->who.incarnation == incarnation_);
}

std::optional<RecordView::Time> RecordView::led_until() const {
  if (!seen_ || !seen_->record || seen_->record->released) return std::nullopt;
  return seen_->first_seen + seen_->record->lease;
}

Sight RecordView::sight(Time now) const {
  if (!seen_) return Unknown{{Fault::unreachable, "the record has not been read yet"}};
  if (!seen_->commit || free()) return Vacant{};
  const auto lease = seen_->record ? seen_->record->lease : longest_lease_;
  auto out = seen_->record ? seen_->record->who : Incumbent{};
  out.token = token_of(seen_->commit);
  out.remaining = std::max(seen_->first_seen + lease - now, Duration::zero());
  return out;
}

bool RecordView::claimed_since(Token ranked, Time now) const {
  return seen_->record && !free() && now >= doubted_until_ && token_of(seen_->commit) > ranked;
}

RecordView::Time RecordView::claimable_at(Time assigned_at, bool founder) const {
  // Two foreign commits may be equal, and a renewal between them unseen. Since the assignment nobody can have renewed.
  const bool readable = !seen_->commit || seen_->record;
  const auto lease_over = (readable ? seen_->first_seen : std::max(seen_->first_seen, assigned_at)) + longest_lease_;
  if (seen_->commit) return free() ? doubted_until_ : std::max(lease_over, doubted_until_);
  if (founder && !ever_seen_ && !first_claim_waits_) return at_once;
  // Nobody leads by a claim from before, and since then nobody else could claim: our handle owned the partition in each
  // generation. Those who expect that the topic is deleted wait from every assignment.
  const auto since = first_claim_waits_ ? assigned_at : absent_since_.value_or(assigned_at);
  return std::max(since + longest_lease_, doubted_until_);
}

std::optional<Token> RecordView::next_token(Token tried, std::int64_t unix_ms) const {
  auto base = std::max({highest_, tried, token_of(seen_->commit)});
  // A foreign commit says nothing of the tokens before it: a reset of the offsets writes 0.
  if (!seen_->record && unix_ms > 0) base = std::max(base, Token{static_cast<std::uint64_t>(unix_ms)});
  if (base.value >= max_token) return std::nullopt;
  return Token{base.value + 1};
}

// ---- for the log ----

std::optional<effect::Tell> report_of(int partition, const std::optional<Commit>& read,
                                      const RecordView::Finding& found) {
  const auto where = std::to_string(partition);
  if (found.fell_from)
    return effect::Tell{Level::error, "the token of partition " + where + " fell to " +
                                          std::to_string(token_of(read).value) + " from " +
                                          std::to_string(found.fell_from->value) +
                                          ": Kafka lost an acknowledged commit. Nobody claims there before a full "
                                          "lease is over"};
  if (found.foreign)
    return effect::Tell{Level::warning, "a foreign commit stands in place of the record of partition " + where +
                                            ": offset " + std::to_string(read->offset) + ", metadata " +
                                            shown(read->metadata) + ". It counts as a lease of an unknown holder"};
  return std::nullopt;
}

}  // namespace tenure::kafka
