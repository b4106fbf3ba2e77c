// SPDX-License-Identifier: Apache-2.0
// The threads round Roles or NonExclusiveRoles.
#pragma once
#include <memory>
#include <optional>

#include "machine_threads.hpp"
#include "role_machine.hpp"

namespace tenure::kafka {

class RoleThreads final : public MachineThreads<RoleThreads, RoleFact, RoleAnswer> {
 public:
  /// Throws std::system_error if threads or descriptors have run out.
  static std::shared_ptr<RoleThreads> make(Options options, int units, Exclusive exclusive,
                                           std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer);

  Result<Pace> pace_of_its(const Timing& timing) const { return group_pace_of(timing, options_, exclusive_); }

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace);

  /// One call at a time. Its answer, or nothing if the limit passed first.
  std::optional<RoleAnswer> call(RoleCall what, const Limit& limit);

  Exclusive exclusive() const { return exclusive_; }

 private:
  friend MachineThreads;
  using MachineThreads::carry_out;

  RoleThreads(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
              std::unique_ptr<Reader> observer);

  // The serving thread
  RoleMachine& machine() { return *roles_; }
  static RoleFact assigned(std::uint64_t handle, const Client::Event& event, int generation) {
    return role_fact::Assigned{handle, event.partitions, generation};
  }
  void handled() {}
  bool waits_to_leave() const { return exclusive_ == Exclusive::yes; }  ///< By rule S6 it would be alive for too long.
  void carry_out(effect::Open& asked);
  void carry_out(role_effect::SendCommit& asked) { send(asked.id, asked.commits); }
  void carry_out(role_effect::ReadMember& read);
  void carry_out(role_effect::Observe& asked);
  void carry_out(role_effect::Reply& reply) { mailbox_.answer(reply.id, std::move(reply.answer)); }

  // The reading thread
  role_fact::Observed observe(const role_effect::Observe& asked);
  Result<int> topic(const role_effect::Observe& asked);

  const int units_;  ///< At first.
  const Exclusive exclusive_;
  std::unique_ptr<RoleMachine> roles_;  ///< the serving thread's, from begin() on
};

}  // namespace tenure::kafka
