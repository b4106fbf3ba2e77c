// SPDX-License-Identifier: Apache-2.0
// A connection and the thread that uses it: what every store here asks by, and waits by.
#pragma once
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tenure/kit/call_thread.hpp>
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
                                             const Limit& limit);

 private:
  bool listen(const Limit& limit);
  void tell_notes() const {
    if (connection_->notes()) connection_->notes()->tell();
  }

  const std::shared_ptr<Connection> connection_;
  CallThread thread_;
};

}  // namespace tenure::postgres
