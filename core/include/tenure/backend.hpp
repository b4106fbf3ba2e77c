// SPDX-License-Identifier: Apache-2.0
// The seam between elections and stores: six verbs, four answers.
#pragma once
#include <optional>
#include <string>
#include <variant>

#include <tenure/candidate.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/limit.hpp>
#include <tenure/timing.hpp>
#include <tenure/token.hpp>

namespace tenure {

// clang-format off
struct Unknown { Error error{}; };                     ///< No answer. The question may or may not have taken effect.
struct Granted { Token token{}; };                     ///< Yes: we lead for one term, counted from when core asked.
struct Denied { std::optional<Incumbent> holder{}; };  ///< No: we do not lead, or not any more. Who does, if known.
struct StepDownRequested { Token token{}; std::string by{}, why{}; };  ///< Granted, but somebody asks us to step down.
// clang-format on

/// Unknown comes first, because a mock without instructions answers by the first one. It elects nobody.
using Answer = std::variant<Unknown, Granted, Denied, StepDownRequested>;

struct Vacant {};
/// Who leads. Unknown: the store did not say. An Incumbent whose `remaining` is 0 has lapsed, as far as we can tell.
using Sight = std::variant<Unknown, Vacant, Incumbent>;

/// By a backend, one candidate takes part in one election of one store.
///
/// One thread at a time calls the verbs. Each is a single attempt, and does not throw when the store fails (an
/// exception counts as Unknown). A constructor throws std::invalid_argument for settings that can never work.
/// REQUIRES of an implementation: every verb returns by `limit.by`, or soon after `limit.stop`. Nothing waits for a
/// verb that is 50 ms late; once it is late by another Timing::call, and a second at least, it is reported as wedged. A
/// backend never calls the manager.
class TENURE_EXPORT Backend {
 public:
  virtual ~Backend() = default;

  /// Attempts once to lead. Denied while somebody else's lease runs, or while there is another reason to wait. Then
  /// await_change() returns when the next attempt makes sense.
  virtual Answer acquire(const Limit& limit) = 0;

  /// Extends our lease by another term. Denied only if we certainly lead no more.
  virtual Answer renew(Token token, const Limit& limit) = 0;

  /// Ends every tenure that this incarnation holds or may hold, and leaves any queue. May be repeated.
  virtual std::optional<Error> release(const Limit& limit) = 0;

  /// Who leads. Anybody may ask, candidate or not.
  virtual Sight observe(const Limit& limit) = 0;

  /// Sleeps until the store says that `seen` may no longer hold, until the end of the lease in `seen`, or until the
  /// limit. Returns at once if that has happened already. It may also return for no reason.
  virtual void await_change(const Sight& seen, const Limit& limit) = 0;

  /// Asks the incumbent to step down. Its manager hands over with its next renewal, and leaves a term to others. `by`
  /// (who asks, at most 100 bytes) and `why` (at most 200 bytes) reach its ousting(). Anybody may ask, candidate or
  /// not. Returns nothing if the request is stored, or if nobody leads. By default it returns an error: not offered.
  virtual std::optional<Error> request_step_down(const std::string& by, const std::string& why, const Limit& limit);

  /// The manager calls it with its timing before the first verb. An error says why the timing is refused.
  virtual std::optional<Error> accepts(const Timing& timing);

  /// The election's name, for hooks and logs.
  virtual std::string election() const;
};

}  // namespace tenure
