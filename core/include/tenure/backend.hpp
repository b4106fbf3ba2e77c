// SPDX-License-Identifier: Apache-2.0
// The seam between elections and stores: five verbs, four answers.
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
struct Unknown { Error error{}; };                     ///< No answer: the question may or may not have taken effect.
struct Granted { Token token{}; };                     ///< Yes: ours for one term, counted from when core asked.
struct Denied { std::optional<Incumbent> holder{}; };  ///< No: somebody else's, or not ours any more; whose, if known.
struct Recalled { Token token{}; std::string by{}, why{}; };  ///< Granted, and somebody asks us to hand it back.
// clang-format on

/// Unknown stands first: it is what a mock answers that was told nothing, and it elects nobody.
using Answer = std::variant<Unknown, Granted, Denied, Recalled>;

struct Vacant {};
/// Who leads? Unknown: nobody could say. An Incumbent with remaining 0 has lapsed as far as we can tell.
using Sight = std::variant<Unknown, Vacant, Incumbent>;

/// One candidate's seat at one election in one store.
///
/// Verbs are called by one thread at a time. They are single attempts and never throw for what a store does (an
/// exception is taken as Unknown); a constructor throws std::invalid_argument for what can never work.
/// REQUIRES of an implementation: every verb returns by `limit.by`, or soon after `limit.stop`; one that is 50 ms
/// late is reported as wedged. A backend returns, it never calls the manager.
class TENURE_EXPORT Backend {
 public:
  virtual ~Backend() = default;

  /// One attempt to lead, now. Denied while somebody else's lease runs, or while there is something to wait for:
  /// await_change() returns when another attempt is worth it.
  virtual Answer acquire(const Limit& limit) = 0;

  /// Keep it for another term. Denied only if it is certainly not ours any more.
  virtual Answer renew(Token token, const Limit& limit) = 0;

  /// Ends whatever this incarnation holds or may hold, and gives up its place in any queue. Idempotent.
  virtual std::optional<Error> release(const Limit& limit) = 0;

  /// Who leads? For anyone, candidate or not.
  virtual Sight observe(const Limit& limit) = 0;

  /// Sleeps until the store says that something else than `seen` may be so, the seen lease's end, or the limit.
  /// Level-triggered: returns at once if it is so already.
  virtual void await_change(const Sight& seen, const Limit& limit) = 0;

  /// Asked by the manager before the first verb, with what it will run by, and between verbs when that is to change. An
  /// error refuses it, with the reason, and leaves what held before. What is accepted counts from the next acquire():
  /// REQUIRES: until then renew() extends by the term of the acquire() that was granted; never by less.
  virtual std::optional<Error> accepts(const Timing& timing);

  /// The election's name, for hooks and logs.
  virtual std::string election() const;
};

}  // namespace tenure
