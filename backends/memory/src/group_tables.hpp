// SPDX-License-Identifier: Apache-2.0
// One group's sessions and leads, as a database would keep them. The hub's mutex guards them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>

namespace tenure::memory {

class GroupTables {
 public:
  /// Whether the data can be lost; the group then has a marker.
  explicit GroupTables(bool can_lose) : can_lose_(can_lose) {}

  Look look(const std::string& cursor, std::int64_t now_ms) const;
  Committed open(SessionId id, const Session& session, std::int64_t now_ms);
  Committed commit(const Commit& commit, std::int64_t now_ms);
  bool end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat, std::int64_t now_ms);
  int sweep();
  std::set<std::string> retire(const std::map<std::string, Token>& leads);
  bool request_step_down(const std::string& election, const StepDown& request);  ///< False: there is no such lead.

  void lose_session(SessionId id);
  void spoil_lead(const std::string& election);
  void mend_lead(const std::string& election);
  void lose_everything();

  /// How often something was released, ended or asked to step down.
  std::uint64_t events() const { return events_; }
  bool happened_since(const std::string& cursor) const;
  /// What happened since, if it was one release and no more.
  std::optional<Release> release_since(const std::string& cursor) const;

 private:
  /// Without leads if the cursor means nothing.
  Look look_or_less(const std::string& cursor, std::int64_t now_ms) const;

  struct Row {
    Lead lead;
    std::uint64_t changed{};
    bool spoilt{};
  };
  struct Event {
    std::uint64_t at{};
    std::optional<Release> release;
  };

  std::optional<std::uint64_t> place(const std::string& cursor) const;
  bool alive(SessionId id) const;
  bool may_commit(const Commit& commit) const;
  bool claimable(const Claim& claim, const Commit& by) const;
  bool release(const Release& release, SessionId by);
  bool may_be_retired(const std::string& election, Token token) const;
  void write(SessionId id, const Session& session, std::int64_t now_ms);
  void tell(std::optional<Release> release = {});

  const bool can_lose_;
  bool founded_{};
  std::uint64_t marker_{};
  std::map<SessionId, Session> sessions_;
  std::map<std::string, Row> leads_;
  Token retired_{};
  std::uint64_t changes_{};  ///< Counts the steps that changed a lead, or of which somebody is told.
  std::uint64_t losses_{};   ///< A cursor of before a loss means nothing.
  std::uint64_t events_{};
  Event last_{}, last_but_one_{};
};

}  // namespace tenure::memory
