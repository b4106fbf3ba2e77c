// SPDX-License-Identifier: Apache-2.0
// The two threads round Roles or SharedRoles, as those of Carrier round Neli: the serving thread owns the machine and
// the member handle, and the reading thread makes the reads that block.
#pragma once
#include <memory>
#include <optional>
#include <thread>

#include <tenure/kafka.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "mailbox.hpp"
#include "member.hpp"
#include "reader.hpp"
#include "reading_thread.hpp"
#include "role_machine.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Owned by the store and its two threads together.
class RoleCarrier : public std::enable_shared_from_this<RoleCarrier> {
 public:
  /// Throws std::system_error if threads or descriptors have run out.
  static std::shared_ptr<RoleCarrier> make(Options options, int units, Exclusive exclusive,
                                           std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer);

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace);
  void stop();

  void post(RoleFact fact) { mailbox_.post(std::move(fact)); }

  /// One call at a time. Its answer, or nothing if the limit passed first.
  std::optional<RoleAnswer> call(RoleCall what, const Limit& limit);

  const Options& options() const { return options_; }
  Exclusive exclusive() const { return exclusive_; }

 private:
  RoleCarrier(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
              std::unique_ptr<Reader> observer);
  std::unique_ptr<RoleMachine> machine(const Timing& timing) const;

  // The serving thread
  void serve();
  void take_events();
  void handle(const RoleFact& fact);
  void carry_out(role_effect::Open&);
  void carry_out(role_effect::Assign&);
  void carry_out(role_effect::Unassign&);
  void carry_out(role_effect::SendCommit&);
  void carry_out(role_effect::ReadMember&);
  void carry_out(role_effect::Observe&);
  void carry_out(role_effect::FindOwners&);
  void carry_out(role_effect::Drop&);
  void carry_out(role_effect::Reply&);
  void carry_out(role_effect::Tell&);

  // The reading thread
  role_fact::Observed observe(const role_effect::Observe& asked);
  Result<int> topic(const role_effect::Observe& asked);

  const Options options_;
  const int units_;  ///< At first.
  const Exclusive exclusive_;
  const std::shared_ptr<ClosableLog> log_;
  const std::unique_ptr<Reader> observer_;  ///< The reading thread's, but for explained().
  const std::string incarnation_;

  Mailbox<RoleFact, RoleAnswer> mailbox_;
  ReadingThread reading_;
  std::thread serve_thread_;

  // The serving thread's, from begin() on
  std::unique_ptr<RoleMachine> roles_;
  Pace pace_{};
  Member member_;
};

}  // namespace tenure::kafka
