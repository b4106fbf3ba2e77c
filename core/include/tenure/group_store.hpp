// SPDX-License-Identifier: Apache-2.0
// The third seam: a store that keeps many elections of one group, and changes them in one step. A process has one lease
// for all of them, its session. So it asks the store as often for ten thousand elections as for one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/exclusive.hpp>
#include <tenure/export.hpp>
#include <tenure/group.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// The one write of a process: it renews its session, and changes leads in the same step.
struct Commit {
  SessionId session{};
  std::vector<std::uint64_t> beats{};  ///< The session must have one of them.
  Session next{};
  std::uint64_t marker{};       ///< The marker of the last look. A group with another one refuses the commit.
  std::vector<Claim> claims{};  ///< Sorted by name, each name once; so are the releases. No name is in both.
  std::vector<Release> releases{};
  std::vector<SessionId> ended{};  ///< We have seen that these have ended, or are absent. Their leads may be claimed.
  Token at_least{};  ///< All claims get one token, at least this, the store's clock (unix ms), and above all retired.
  std::string cursor{};  ///< Of the last look. If the store does not know it, the answer may leave out the leads.
};

/// How many claims and releases one commit may carry. Each commit is a renewal, whatever it carries.
inline constexpr std::size_t max_changes = 500;

/// Why no store may carry this out: it has too many changes, or names that Commit does not allow.
TENURE_EXPORT std::optional<Error> refused_commit(const Commit& commit);
/// The same of retire(): no token follows one of its tokens.
TENURE_EXPORT std::optional<Error> refused_retirement(const std::map<std::string, Token>& leads);

/// The answer to a commit.
struct Committed {
  bool granted{};                                  ///< False: only what `released` says was done. `look` shows it.
  Token token{};                                   ///< The token of all claims.
  std::vector<std::string> claimed{}, released{};  ///< What was done. The look shows why the rest was not, or this:
  std::map<std::string, Error> refused{};          ///< what cannot be written just now, as where a row is locked.
  /// Leads of ours that it did not renew, although the session is: each ends when the renewal before would have ended.
  std::vector<std::string> not_renewed{};
  Look look{};  ///< What stands after the commit. If granted, it tells no session but ours.
};

/// One group in one store. One thread at a time calls it, except await_change(), which a second one may be in. Limits
/// hold as for a Backend. An Error means that the call may or may not have taken effect. REQUIRES of an implementation:
/// it is linearizable, each call takes effect in one step or not at all, but see commit(), and repeats no write itself.
class TENURE_EXPORT GroupStore {
 public:
  virtual ~GroupStore() = default;
  virtual std::string group() const = 0;  ///< The group's name. Any thread may ask.

  /// The mode of the store; by default `yes`. With `no` the token of a lead is its version, and fences nothing.
  virtual Exclusive exclusive() const;
  virtual bool allots() const;  ///< Whether the store fills Look::allotted, so that no Spread counts. By default false.

  /// This process takes part in an election, or no longer. Any thread calls it, beside all other calls, and before the
  /// first call that names the election. From the first one on, answers may leave out the leads of elections that were
  /// not joined. By default it does nothing.
  virtual void joined(const std::string& election);
  virtual void left(const std::string& election);  ///< See joined().

  /// Reads what changed since that cursor. Reads everything if the cursor is empty, or if the store knows it no longer.
  /// After joined() an earlier cursor tells nothing of what was joined.
  virtual Result<Look> look(const std::string& cursor, const Limit& limit) = 0;

  /// Adds the session, unless its id stands there. Founds the group if there is none, or if its marker is damaged: then
  /// the group is empty and has a new marker.
  virtual Result<Committed> open(SessionId id, const Session& session, const Limit& limit) = 0;

  /// If the group has this marker, and the session stands, has not ended and has one of these beats: writes the session
  /// anew and carries out each change that is possible. Otherwise does nothing. If refused_commit() has an error, does
  /// nothing and returns that. A store may carry out the releases first, in a step of their own, so that others see
  /// them sooner. If the session ends between the steps, the releases stand, and the rest is refused.
  ///
  /// A claim is possible if the lead has the expected token, and is released, or names this session, or names one of
  /// `ended` that does not stand alive here; or if there is no lead, and none or a retired one is expected. A release
  /// is possible if the lead has its token, names this session and is not released.
  virtual Result<Committed> commit(const Commit& commit, const Limit& limit) = 0;

  /// Ends a session, ours or another's, if it has one of these beats. True: it has ended by now. False: it has another
  /// beat, or is absent, since what is absent may have been lost.
  virtual Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                           const Limit& limit) = 0;

  /// Removes the ended sessions that no unreleased lead names; says how many, or more if there is more to do. May
  /// release what other ended ones lead.
  virtual Result<int> sweep(const Limit& limit) = 0;

  /// Removes the leads of elections that nobody joins any more; says which. A lead is removed if it has this token, and
  /// is released or names a session that stands here and has ended. Look::retired becomes the greatest of these tokens,
  /// so that no token falls if a name comes back. At most `max_changes`. By default an error: it keeps no such leads.
  /// Afterwards no earlier cursor counts, since a cursor tells what stands, and not what is gone.
  virtual Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit);

  /// Puts the request beside the lead, in place of an earlier one. Does nothing if the lead has another token by now.
  /// An error (misconfigured) if nobody ever led the election.
  virtual std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                                 const Limit& limit) = 0;

  /// Sleeps until something was released, ended or asked to step down since `cursor`, or until the limit. May return
  /// for no reason. By default it only sleeps. If a push named one release, it returns that, and its heir claims
  /// unread.
  virtual std::optional<Release> await_change(const std::string& cursor, const Limit& limit);

  /// Whether the store can keep sessions of this term. An error says why not.
  virtual std::optional<Error> accepts(const Timing& timing);
};

}  // namespace tenure
