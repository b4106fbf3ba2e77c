// SPDX-License-Identifier: Apache-2.0
// Waits for notices on the thread that uses the connection.
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
  const auto hear = [&] {
    return thread_.exchange(
        [&](const Exchange& exchange) -> Result<Heard> {
          const auto waited = connection_->await_news(exchange, none_of_it);
          return Heard(waited, connection_->news());
        },
        limit);
  };
  auto heard = hear();
  tell_notes();
  if (heard && heard->first == Wait::deaf && listen(limit)) heard = hear();
  if (heard && heard->first == Wait::news) return std::move(heard->second);
  if (heard && heard->first == Wait::impossible) thread_.wait_out(limit);
  if (!heard || heard->first == Wait::broken || heard->first == Wait::deaf)
    thread_.wait_out({limit.clock, std::min(limit.by, began + jittered(calm)), limit.stop});
  return std::nullopt;
}

/// On the thread, because the answer is waited for there.
bool Client::listen(const Limit& limit) {
  const auto done = ask<bool>(
      [](Connection& connection) {
        connection.listen();
        return true;
      },
      limit);
  return bool(done);
}

}  // namespace tenure::postgres
