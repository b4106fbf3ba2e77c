// SPDX-License-Identifier: Apache-2.0
// Groups of elections on a hub: their tables, behind its mutex and its faults.
#include <type_traits>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/memory.hpp>

#include "hub_state.hpp"

namespace tenure::memory {
namespace {

class Group final : public GroupStore {
 public:
  Group(std::shared_ptr<Hub::State> hub, std::string name)
      : hub_(std::move(hub)), name_(std::move(name)), tables_(tables()) {}

  std::string group() const override { return name_; }

  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    return hub_->read(limit, [&] { return tables_.look(cursor, hub_->now_ms(limit.clock)); });
  }

  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return write(limit, [=](GroupTables& tables, std::int64_t now_ms) { return tables.open(id, session, now_ms); });
  }

  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    if (auto error = refused_commit(commit)) return *std::move(error);
    return write(limit, [=](GroupTables& tables, std::int64_t now_ms) { return tables.commit(commit, now_ms); });
  }

  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return write(limit,
                 [=](GroupTables& tables, std::int64_t now_ms) { return tables.end(id, beats, new_beat, now_ms); });
  }

  Result<int> sweep(const Limit& limit) override {
    return write(limit, [](GroupTables& tables, std::int64_t) { return tables.sweep(); });
  }

  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit) override {
    if (auto error = refused_retirement(leads)) return *std::move(error);
    return write(limit, [=](GroupTables& tables, std::int64_t) { return tables.retire(leads); });
  }

  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    const auto stored =
        write(limit, [=](GroupTables& tables, std::int64_t) { return tables.request_step_down(election, request); });
    if (!stored) return stored.error();
    if (*stored) return std::nullopt;
    return Error{Fault::misconfigured, "memory: nobody has ever led \"" + printable(election, 40) +
                                           "\" in the group \"" + printable(name_, 40) +
                                           "\", so nobody can be asked to step down"};
  }

  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    return hub_->await(
        &tables_, limit, [&] { return tables_.happened_since(cursor); },
        [&] { return hub_->traits.push ? tables_.release_since(cursor) : std::nullopt; });
  }

 private:
  GroupTables& tables() {
    check_election(name_);
    const std::lock_guard lock(hub_->mutex);
    return hub_->groups.try_emplace(name_, !hub_->traits.absence_certain).first->second;
  }

  /// `change` may be carried out when this object is gone.
  template <class Change>
  Result<std::invoke_result_t<Change, GroupTables&, std::int64_t>> write(const Limit& limit, Change change) {
    return hub_->write(limit, [&hub = *hub_, &tables = tables_, &clock = limit.clock, change] {
      const auto events = tables.events();
      auto done = change(tables, hub.now_ms(clock));
      if (tables.events() != events) hub.wake(&tables);
      return done;
    });
  }

  const std::shared_ptr<Hub::State> hub_;
  const std::string name_;
  GroupTables& tables_;
};

}  // namespace

std::shared_ptr<GroupStore> Hub::group(const std::string& name) const { return std::make_shared<Group>(state_, name); }

void Hub::spoil_lead(const std::string& group, const std::string& election) {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->groups.find(group);
  if (it != state_->groups.end()) it->second.spoil_lead(election);
}

void Hub::mend_lead(const std::string& group, const std::string& election) {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->groups.find(group);
  if (it != state_->groups.end()) it->second.mend_lead(election);
}

void Hub::lose_session(const std::string& group, SessionId id) {
  const std::lock_guard lock(state_->mutex);
  const auto it = state_->groups.find(group);
  if (it != state_->groups.end()) it->second.lose_session(id);
}

}  // namespace tenure::memory
