// SPDX-License-Identifier: Apache-2.0
// What a GroupCandidacy asks is carried out by the model of a store, and it is handed the answer.
#pragma once
#include <cstdint>
#include <utility>
#include <variant>

#include "group/group_candidacy.hpp"
#include "group_model.hpp"

namespace tenure::test {

/// Of an open or a commit, a look, an end, a sweep.
using GroupAnswer = std::variant<Result<Committed>, Result<Look>, Result<bool>, Result<int>>;

/// `marker` draws one for a group that is founded.
inline GroupAnswer no_answer(const GroupQuestion& question);

template <class Marker>
GroupAnswer carried_out(GroupModel& store, const GroupQuestion& question, Marker marker) {
  const auto& what = question.what;
  if (const auto* a = std::get_if<ask::Open>(&what)) return Result<Committed>(store.open(a->id, a->session, marker()));
  if (const auto* a = std::get_if<ask::Write>(&what)) return Result<Committed>(store.commit(a->commit));
  if (const auto* a = std::get_if<ask::See>(&what)) return Result<Look>(store.look(a->cursor));
  if (const auto* a = std::get_if<ask::End>(&what); a && store.stuck.contains(a->id)) return no_answer(question);
  if (const auto* a = std::get_if<ask::End>(&what)) return Result<bool>(store.end(a->id, a->beats, a->new_beat));
  return Result<int>(std::holds_alternative<ask::Sweep>(what) ? store.sweep() : 0);
}

inline GroupAnswer no_answer(const GroupQuestion& question) {
  const Error error{Fault::timed_out, "no answer"};
  if (std::holds_alternative<ask::See>(question.what)) return Result<Look>(error);
  if (std::holds_alternative<ask::End>(question.what)) return Result<bool>(error);
  if (std::holds_alternative<ask::Sweep>(question.what)) return Result<int>(error);
  return Result<Committed>(error);
}

inline void hand(GroupCandidacy& to, Clock::Time now, std::uint64_t question, GroupAnswer answer) {
  if (auto* committed = std::get_if<Result<Committed>>(&answer)) to.committed(now, question, std::move(*committed));
  if (auto* look = std::get_if<Result<Look>>(&answer)) to.looked(now, question, std::move(*look));
  if (const auto* ended = std::get_if<Result<bool>>(&answer)) to.ended(now, question, *ended);
  if (const auto* swept = std::get_if<Result<int>>(&answer)) to.swept(now, question, *swept);
}

}  // namespace tenure::test
