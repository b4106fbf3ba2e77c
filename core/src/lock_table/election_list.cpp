// SPDX-License-Identifier: Apache-2.0
// Turns a record that was read into a row of a list.
#include <tenure/election_list.hpp>

#include <algorithm>
#include <chrono>
#include <tenure/kit/who.hpp>
#include <utility>

namespace tenure {
namespace {

/// More is the mistake of a clock, and could overflow a Duration.
constexpr std::chrono::milliseconds oldest = std::chrono::hours(24 * 365 * 100);

Clock::Duration age_of(const Record& record, const Read& read, Clock::Time now) {
  const auto age = read.same_clock
                       ? now.time_since_epoch() - record.asked
                       : std::clamp(std::chrono::milliseconds(read.now_ms) -
                                        std::chrono::milliseconds(std::max<std::int64_t>(record.written_ms, 0)),
                                    std::chrono::milliseconds::zero(), oldest);
  return std::max<Clock::Duration>(age, Clock::Duration::zero());
}

}  // namespace

ListedElection listed(std::string election, const Result<Read>& found, Clock::Time now) {
  ListedElection out{.election = std::move(election), .sight = Vacant{}};
  if (!found) {
    out.sight = Unknown{found.error()};
  } else if (found->unreadable || (found->record && !read_who(found->record->who))) {
    out.sight = Unknown{{Fault::corrupt, "the record cannot be read"}};
  } else if (found->record) {
    const auto& record = *found->record;
    out.age = age_of(record, *found, now);
    if (!record.released)
      out.sight = incumbent_of(record.who, record.token, std::max(record.term - out.age, Clock::Duration::zero()));
  }
  return out;
}

}  // namespace tenure
