// SPDX-License-Identifier: Apache-2.0
// The two threads round Roles or SharedRoles, as those of Carrier round Neli: the serving thread owns the machine and
// the member handle, and the reading thread makes the reads that block.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tenure/kafka.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "reaper.hpp"
#include "role_machine.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// Owned by the store and its two threads together.
class RoleCarrier : public std::enable_shared_from_this<RoleCarrier> {
 public:
  /// Throws std::system_error if threads or descriptors have run out.
  static std::shared_ptr<RoleCarrier> make(Options options, int units, Exclusive exclusive,
                                           std::shared_ptr<ClosableLog> log, std::shared_ptr<Client> observer);

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace);
  void stop();

  void post(RoleFact fact);

  /// One call at a time. Its answer, or nothing if the limit passed first.
  std::optional<RoleAnswer> call(RoleCall what, const Limit& limit);

  const Options& options() const { return options_; }
  Exclusive exclusive() const { return exclusive_; }

 private:
  using Job = std::function<RoleFact()>;

  RoleCarrier(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
              std::shared_ptr<Client> observer);
  std::unique_ptr<RoleMachine> machine(const Timing& timing) const;

  // The serving thread
  void serve();
  bool survives(const std::function<void()>& step);
  void take_events();
  void handle(const RoleFact& fact);
  void carry_out(role_effect::Open&);
  void carry_out(role_effect::Assign&);
  void carry_out(role_effect::Unassign&);
  void carry_out(role_effect::SendCommit&);
  void carry_out(role_effect::ReadMember&);
  void carry_out(role_effect::Observe&);
  void carry_out(role_effect::Drop&);
  void carry_out(role_effect::Reply&);
  void carry_out(role_effect::Tell&);
  Clock::Time next_nudge();

  // The reading thread
  void read();
  void queue(Job job, bool first);
  role_fact::Observed observe(bool check_topic);

  const Options options_;
  const int units_;
  const Exclusive exclusive_;
  const std::shared_ptr<ClosableLog> log_;
  const std::shared_ptr<Client> observer_;
  Reaper& reaper_;
  Pace pace_{};
  const std::string incarnation_;

  std::mutex mutex_;
  std::vector<RoleFact> inbox_;
  std::deque<Job> jobs_;
  bool begun_{}, quit_{}, read_quit_{};
  std::uint64_t last_call_{};
  std::optional<RoleAnswer> answer_;  ///< of last_call_

  std::shared_ptr<Waker> serve_wakes_, caller_wakes_;
  std::unique_ptr<Waker> read_wakes_;
  std::thread serve_thread_, read_thread_;
  std::shared_ptr<std::atomic<bool>> read_over_{std::make_shared<std::atomic<bool>>(false)};

  // The serving thread's, from begin() on
  std::unique_ptr<RoleMachine> roles_;
  std::shared_ptr<Client> member_;
  std::uint64_t handle_{};
  Clock::Time nudge_at_{Clock::Time::max()};
};

}  // namespace tenure::kafka
