// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <algorithm>

#include <tenure/kit/jitter.hpp>

namespace tenure::postgres {
namespace {

/// The longest pause before a broken session is made again by one who waits. It may end as soon as it idles.
constexpr Clock::Duration calm = std::chrono::seconds(1);

}  // namespace

std::optional<Connection::News> Client::await_news(const std::function<void(Connection::News&)>& none_of_it,
                                                   const Limit& limit) {
  using Wait = Connection::Wait;
  using Heard = std::pair<Wait, Connection::News>;
  const auto began = limit.clock.now();
  auto heard = thread_.exchange(
      [&](const Exchange& exchange) -> Result<Heard> {
        const auto waited = connection_->await_news(exchange, none_of_it);
        return Heard(waited, connection_->news());
      },
      limit);
  if (heard && heard->first == Wait::news) return std::move(heard->second);
  if (heard && heard->first == Wait::impossible) thread_.wait_out(limit);
  if (!heard || heard->first == Wait::broken)
    thread_.wait_out({limit.clock, std::min(limit.by, began + jittered(calm)), limit.stop});
  return std::nullopt;
}

}  // namespace tenure::postgres
