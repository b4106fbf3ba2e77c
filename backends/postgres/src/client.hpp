// SPDX-License-Identifier: Apache-2.0
// A connection and the thread that uses it: what every store here asks by, and waits by; and the store of one election.
#pragma once
#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/jitter.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "connection.hpp"

namespace tenure::postgres {

class Client final {
 public:
  Client(Settings settings, Purpose purpose, Clock::Duration patience = std::chrono::seconds(2))
      : connection_(std::make_shared<Connection>(std::move(settings), std::move(purpose))),
        thread_(connection_, patience) {}

  /// What `work` returns, or why not. It may outlive the call.
  template <class Value, class Work>
  Result<Value> ask(Work work, const Limit& limit) {
    auto answer = thread_.ask(
        [connection = connection_, work](auto&) -> Result<Value> {
          try {
            return work(*connection);
          } catch (const std::exception& e) {
            return connection->failed(e);
          }
        },
        limit);
    tell_notes();
    return answer;
  }

  /// Sleeps until there is news, which stays, or until the limit. As Connection::await_news(). The first wait of a
  /// connection begins to listen, which is news: what came before was not heard. A broken connection is no news: this
  /// then rests for a while, so that nobody makes connections in a hurry.
  std::optional<Connection::News> await_news(const std::function<void(Connection::News&)>& none_of_it,
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

 private:
  /// The longest pause before a broken session is made again by one who waits. It may end as soon as it idles.
  static constexpr Clock::Duration calm = std::chrono::seconds(1);

  /// On the thread, because the answer is waited for there.
  bool listen(const Limit& limit) {
    const auto done = ask<bool>(
        [](Connection& connection) {
          connection.listen();
          return true;
        },
        limit);
    return bool(done);
  }

  void tell_notes() const {
    if (connection_->notes()) connection_->notes()->tell();
  }

  const std::shared_ptr<Connection> connection_;
  CallThread thread_;
};

/// The store of one election.
std::shared_ptr<ConditionalStore> store_of(const Settings& settings, const std::string& election,
                                           const Log& log = no_log);

}  // namespace tenure::postgres
