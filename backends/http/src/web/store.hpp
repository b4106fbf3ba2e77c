// SPDX-License-Identifier: Apache-2.0
// What the stores over HTTP do alike: each call runs on the thread of a connection. A header alone, as http.hpp is.
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>

#include "until.hpp"

namespace tenure::web {

/// `Cell` reads and replaces one record, by one connection. It is used by the calls of that connection's thread alone.
///
/// No such server shows a clock that is fine enough, so each process takes its own. It is a hint, here as everywhere.
template <class Cell>
class Store : public ConditionalStore {
 public:
  Store(std::shared_ptr<CallThread::Connection> connection, std::shared_ptr<Cell> cell)
      : cell_(std::move(cell)), commands_(std::move(connection)) {}

  Result<Read> read(const Limit& limit) override {
    auto found = commands_.ask([cell = cell_, until = Until(limit)](auto&) { return cell->read(until); }, limit);
    if (found) found->now_ms = limit.clock.unix_ms();
    return found;
  }

  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    return replace(expected, next, limit);
  }

  std::optional<Version> await_change(const std::optional<Version>&, const Limit& limit) override {
    commands_.wait_out(limit);
    return std::nullopt;
  }

  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override {
    const auto done = commands_.ask(
        [cell = cell_, request, until = Until(limit)](auto&) -> Result<bool> {
          if (auto error = cell->request_step_down(request, until)) return *error;
          return true;
        },
        limit);
    return done ? std::nullopt : std::optional(done.error());
  }

 protected:
  /// `hint`: what the cell is told besides.
  template <class... Hint>
  Result<Swap> replace(const std::optional<Expected>& expected, const Record& next, const Limit& limit, Hint... hint) {
    auto written = next;
    written.written_ms = limit.clock.unix_ms();
    auto swap = commands_.ask([cell = cell_, expected, written, until = Until(limit),
                               hint...](auto&) { return cell->replace(expected, written, until, hint...); },
                              limit);
    if (swap) swap->found.now_ms = limit.clock.unix_ms();
    return swap;
  }

  const std::shared_ptr<Cell> cell_;
  CallThread commands_;
};

}  // namespace tenure::web
