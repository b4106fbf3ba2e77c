// SPDX-License-Identifier: Apache-2.0
// A process of a group that a test drives verb by verb. A tool of group_suite.hpp.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/contract/mirror.hpp>
#include <tenure/contract/player.hpp>
#include <tenure/kit/who.hpp>

namespace tenure::contract {

/// One process: a connection, a session, and what it was told of the group.
class Member {
 public:
  Member(std::shared_ptr<GroupStore> store, std::string name, Clock::Duration call)
      : store_(std::move(store)), name_(std::move(name)), call_(call) {}

  GroupStore& store() { return *store_; }
  SessionId id() const { return id_; }
  std::uint64_t beat() const { return beat_; }
  const Mirror& seen() const { return seen_; }
  Limit limit() const { return Player::within(call_); }

  Session session(std::uint64_t beat) const {
    return {.record = {.token = {1},
                       .beat = beat,
                       .who = who_text({name_, name_ + ":1"}, ""),
                       .term = seconds(10),
                       .asked = boot_clock().now().time_since_epoch()},
            .joined = 3,
            .names = std::uint64_t{7} << 61};
  }

  /// A new session.
  bool open() {
    const auto id = draw_id();
    const auto beat = draw_beat();
    const auto done = answered("open", store_->open(id, session(beat), limit()));
    if (done.granted) id_ = id, beat_ = beat;
    return done.granted;
  }

  /// A renewal, for commit() as it is or with changes.
  Commit renewal() const {
    return {.session = id_,
            .beats = {beat_},
            .next = session(draw_beat()),
            .marker = seen_.marker(),
            .cursor = seen_.cursor()};
  }
  Committed commit(const Commit& commit) {
    auto done = answered("commit", store_->commit(commit, limit()));
    if (done.granted) beat_ = commit.next.record.beat;
    return done;
  }
  bool renew() { return commit(renewal()).granted; }

  /// Claims them, as they were seen. By default with a greater token than any that was seen.
  Committed claim(const Names& elections, std::vector<SessionId> ended = {}, std::optional<Token> at_least = {}) {
    auto claims = renewal();
    for (const auto& election : sorted(elections)) claims.claims.push_back({election, seen_.token(election)});
    claims.ended = std::move(ended);
    claims.at_least = at_least.value_or(Token{seen_.highest().value + 1});
    return commit(claims);
  }
  Committed release(const Names& elections, std::optional<SessionId> heir = {}) {
    auto releases = renewal();
    for (const auto& election : sorted(elections))
      releases.releases.push_back({election, seen_.token(election).value_or(Token{}), heir});
    return commit(releases);
  }
  /// Whether it leads it now, alone.
  bool claims(const std::string& election, std::vector<SessionId> ended = {}) {
    return claim({election}, std::move(ended)).claimed == Names{election};
  }
  bool releases(const std::string& election) { return release({election}).released == Names{election}; }

  bool end() { return end(*this); }
  bool end(const Member& other) { return end(other.id_, {other.beat_}); }
  bool end(SessionId id, const std::vector<std::uint64_t>& beats) {
    return value("end", store_->end(id, beats, draw_beat(), limit()));
  }
  int sweep() { return value("sweep", store_->sweep(limit()), -1); }

  /// What changed since this member was told anything.
  Look look() { return look(seen_.cursor()); }
  Look look(const std::string& cursor) {
    auto look = store_->look(cursor, limit());
    if (look) seen_.take(*look);
    return value("look", std::move(look));
  }

 private:
  template <class T>
  static T value(const char* verb, Result<T> result, T otherwise = {}) {
    if (!result) ADD_FAILURE() << verb << ": " << result.error().message;
    return result ? *std::move(result) : otherwise;
  }
  Committed answered(const char* verb, Result<Committed> result) {
    if (result) seen_.take(result->look);
    return value(verb, std::move(result));
  }

  std::shared_ptr<GroupStore> store_;
  std::string name_;
  Clock::Duration call_;
  SessionId id_{};
  std::uint64_t beat_{};
  Mirror seen_;
};

}  // namespace tenure::contract
