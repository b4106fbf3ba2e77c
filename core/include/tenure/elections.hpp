// SPDX-License-Identifier: Apache-2.0
// Many elections of one process, at the price of one lease.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/exclusive.hpp>
#include <tenure/export.hpp>
#include <tenure/group_store.hpp>
#include <tenure/hooks.hpp>
#include <tenure/leadership.hpp>
#include <tenure/metrics.hpp>
#include <tenure/spread.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Takes part in many elections of one group, at the price of one: the store is asked once per Timing::renew, whatever
/// their number. All tenures of this process share one lease, its session. If that is lost, all of them end.
/// The elections are spread evenly over the processes that take part in the same ones (see Spread).
///
/// It has `hook_threads` for your hooks, and three more. Nothing is claimed while a hook waits for one of them and none
/// has begun for a term, or as many ousting() have outlasted their time. Any thread may call any method, also a hook.
///
/// Hooks of one election are called in order and one at a time, but error() waits for no other. Those of different
/// elections are called at the same time, on as many threads as there are; so elected() must start the work, not be it.
/// What goes wrong in the hooks of one election ends no other. Hooks::eligible is not offered here. The work of each
/// election reports its own progress, by leadership(name).progressed(): see Hooks::stall_after.
///
/// REQUIRES: the store is opened and this is made after fork(). In a forked child start() throws std::logic_error, and
/// every other method does nothing and returns at once.
class TENURE_EXPORT Elections {
 public:
  /// `hooks` are called for every election that has none of its own. Throws std::invalid_argument if `timing` breaks a
  /// rule, the store does not accept it, or `hooks` has what is not offered or cannot be. REQUIRES: the store is this
  /// object's alone. The clock outlives this, and every call into a wedged store.
  Elections(std::shared_ptr<GroupStore> store, Candidate candidate, const Timing& timing, const Hooks& hooks = {},
            Spread spread = {}, int hook_threads = 4, Clock& clock = boot_clock());

  /// The same for a program that was written for this mode. With Exclusive::no, all that is said here of leading is
  /// said of leading beside others. Throws std::invalid_argument if the store has another mode. The constructor above
  /// takes Exclusive::yes.
  Elections(Exclusive exclusive, std::shared_ptr<GroupStore> store, Candidate candidate, const Timing& timing,
            const Hooks& hooks = {}, Spread spread = {}, int hook_threads = 4, Clock& clock = boot_clock());

  /// Calls stop() and joins the threads. Aborts with a message if a hook of its own calls it.
  ~Elections();
  Elections(const Elections&) = delete;
  Elections& operator=(const Elections&) = delete;

  /// Begins to take part, and returns at once. Later calls do nothing. Throws std::system_error if a thread cannot be
  /// started; you may then call it again.
  void start();

  /// Takes part in an election. Nothing changes if it was joined before. `hooks` are its own: all of them in place of
  /// the common ones, also where one is left out. They are kept until it is left and the last of them has returned.
  /// Trouble with the store goes to the common error(), and trouble with its record alone to its own. Throws
  /// std::invalid_argument for a name that is empty, too long or has a NUL byte, and if `hooks` has what it may not.
  void join(const std::string& election, std::shared_ptr<const Hooks> hooks = nullptr);

  /// Joins all of them in one step; none if it throws.
  void join(const std::vector<std::string>& elections);

  /// Takes part no more: ousting() if we lead it, then the store is told. Returns at once.
  void leave(const std::string& election);

  /// Ends our tenure of this election, if there is one. We contend for it again after the cool-down, which begins with
  /// the release. By default it is a `renew` and a `retry`, so that the others have looked. Returns at once.
  void resign(const std::string& election, std::optional<Clock::Duration> cool_down = std::nullopt);

  /// Ends our tenure of this election in favour of the candidate of this name. Returns at once, and says whether that
  /// was begun: we lead it, and that candidate lives, may lead and has joined the same elections as we. What it leads
  /// above its share it hands over in turn, the newest tenures last.
  bool hand_over(const std::string& election, const std::string& to);

  /// Ends all tenures and contends no more. Waits for all ousting(), then for the store, at most twice Timing::call.
  /// In a hook and in a stop callback on a thread of ours (see Elected::stop) it only requests the stop.
  void stop();

  /// Whether we lead it at this very instant by our own clock. It allocates nothing, and shares a lock for a moment.
  bool is_leader(std::string_view election) const noexcept;

  /// Answers the same and more, without a lock or a search for the name. Keep it where you ask often. It stays
  /// valid, also when the election is left and joined again.
  Leadership leadership(const std::string& election) const;

  /// Whether nobody else leads what we lead: the mode in which is_leader() and leadership() speak.
  bool exclusive() const noexcept;

  /// The elections that we lead, with their tokens (Token{} with Exclusive::no).
  std::vector<std::pair<std::string, Token>> led() const;
  std::vector<std::string> unled() const;  ///< Those that it has joined and nobody is known to lead, by name.

  /// What happened so far, for your monitoring. It takes locks for moments. In a forked child it is empty.
  GroupMetrics metrics() const;

  /// What the store did last in place of an answer, in full. Nothing once it has answered.
  std::optional<Error> last_error() const;

  /// How many changes there were: elected, ousting, another incumbent, stopped. It never falls.
  std::uint64_t changes() const;

  /// Waits until changes() differs from `seen`, and returns it. Returns `seen` when the time is over.
  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop = {});

 private:
  class Shell;
  friend class ElectionsInside;  // of the tests
  std::shared_ptr<Shell> shell_;
};

}  // namespace tenure
