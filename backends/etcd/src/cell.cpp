// SPDX-License-Identifier: Apache-2.0
// The transactions that read and replace a record.
#include "cell.hpp"

#include "record.hpp"

namespace tenure::etcd {
namespace {

constexpr const char* transactions = "/v3/kv/txn";

/// More would mean that somebody else writes the beats that we expect.
constexpr int most_tries = 4;

}  // namespace

Result<Done> Cell::transact(const Json& question, std::size_t of_success, std::size_t of_failure, const Until& until) {
  const auto answer = connection_->ask(transactions, question, until);
  if (!answer) return answer.error();
  auto done = done_of(*answer, of_success, of_failure);
  if (!done) return Error{Fault::unreachable, "etcd gave an answer that is none to a transaction"};
  return *std::move(done);
}

Result<Cell::Standing> Cell::standing_of(const std::optional<std::string>& record,
                                         const std::optional<std::string>& step_down) const {
  auto read = read_of(record, step_down, keys_.record);
  if (!read) return std::move(read).error();
  return Standing{record, *std::move(read)};
}

/// A transaction that only reads is linearizable, as it names no range "serializable".
Result<Cell::Standing> Cell::look(const Until& until) {
  const auto done = transact(transaction({}, {range(keys_.record), range(keys_.step_down)}, {}), 2, 0, until);
  if (!done) return done.error();
  return standing_of(done->values[0], done->values[1]);
}

Result<Read> Cell::read(const Until& until) {
  auto found = look(until);
  if (!found) return std::move(found).error();
  seen_ = *std::move(found);
  return seen_->read;
}

/// The write demands the very value that was seen, which has the beat in it. A revision would not do: those of a
/// restored cluster come a second time.
///
/// Of several beats any may stand there. If another one does than we thought, that write had no effect, and the next
/// one demands what was found.
//! [write]
Result<Swap> Cell::replace(const std::optional<Expected>& expected, const Record& next,
                           const std::optional<std::string>& pushed, const Until& until) {
  if (pushed)
    if (auto heard = standing_of(pushed, std::nullopt); heard && matches(expected, heard->read.record))
      seen_ = *std::move(heard);
  if (!seen_ || !matches(expected, seen_->read.record)) {
    const auto found = read(until);
    if (!found) return found.error();
  }
  const auto value = text_of(next);
  const bool news = !expected || expected->token != next.token || next.released;
  std::vector<Json> success{put(keys_.record, value), range(keys_.step_down)};
  if (news) success.push_back(put(keys_.news, value));
  const std::vector<Json> failure{range(keys_.record), range(keys_.step_down)};
  for (int tries = 0; tries < most_tries && matches(expected, seen_->read.record); ++tries) {
    const auto done = transact(transaction({still(keys_.record, seen_->value)}, success, failure), success.size(),
                               failure.size(), until);
    if (!done) return done.error();
    auto stands = standing_of(done->succeeded ? value : done->values[0], done->values[1]);
    if (!stands) return std::move(stands).error();
    seen_ = *std::move(stands);
    if (done->succeeded) return Swap{true, seen_->read};
  }
  return Swap{false, seen_->read};
}
//! [write]

/// A request for a tenure that is over would only take the place of a newer one.
std::optional<Error> Cell::request_step_down(const StepDown& request, const Until& until) {
  const auto found = look(until);
  if (!found) return found.error();
  const auto& record = found->read.record;
  if (!record || record->token != request.token) return std::nullopt;
  const auto done = transact(transaction({}, {put(keys_.step_down, text_of(request))}, {}), 1, 0, until);
  if (!done) return done.error();
  return std::nullopt;
}

}  // namespace tenure::etcd
