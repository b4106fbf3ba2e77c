// SPDX-License-Identifier: Apache-2.0
// What an observer of a group has seen: who leads which election, and until when that holds.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tenure/group_observer.hpp>

namespace tenure {

/// Who leads each election of a group, as looks show it to somebody who takes no part. It is a value: it has no thread
/// and no clock.
///
/// A session's lease ends one term after it was written, and how long ago that was, only the store's clock tells. That
/// may be wrong. But a new beat was written after the look before, so that a lease which was seen to be renewed is
/// known better. Nobody claims anything by it.
class GroupSights {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  struct Change {
    std::string election;
    Sight sight;
  };

  /// `only`: these alone; empty: all.
  GroupSights(Exclusive mode, const std::vector<std::string>& only);

  /// What a look shows that was asked and received then. Returns what changed by it.
  std::vector<Change> saw(const Look& look, Time asked, Time at);

  /// What changed because leases ended.
  std::vector<Change> lapsed(Time now);

  /// When the next lease ends.
  Time next_end() const;

  Sight sight(const std::string& election, Time now) const;
  std::vector<ObservedElection> all(Time now) const;
  const std::string& cursor() const { return cursor_; }
  bool any_unreadable() const;

 private:
  struct Seen {
    Session session{};
    Time end{};
    bool renewed{}, alive{};
  };
  /// As it was told last. The rest of a lease is no news.
  struct Told {
    bool led{}, unknown{};
    Token token{};
    SessionId session{};
    friend bool operator==(const Told&, const Told&) = default;
  };
  struct Entry {
    std::optional<Lead> lead{};
    std::optional<Error> error{};
    Told told{};
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  bool saw_sessions(const Look& look, Time at);
  void take(const Look& look, std::vector<Entries::iterator>& touched);
  Entries::iterator entry(const std::string& election);
  const Seen* leader(const Entry& entry, Time now) const;
  Sight sight_of(const Entry& entry, Time now) const;
  void judge(Entries::iterator it, Time now, std::vector<Change>& out);
  std::vector<Change> judge_all(Time now);

  const Exclusive mode_;
  const bool all_watched_;
  Entries entries_;
  std::map<SessionId, Seen> sessions_;
  std::optional<Time> asked_before_;
  std::string cursor_;
  std::size_t unreadable_{};
};

}  // namespace tenure
