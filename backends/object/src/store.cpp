// SPDX-License-Identifier: Apache-2.0
// The functions of the ConditionalStore.
#include "store.hpp"

#include <utility>

namespace tenure::object {
namespace {

/// A bucket shows its clock in seconds alone, so each process takes its own. It is a hint, here as everywhere.
Read stamped(Read read, const Limit& limit) {
  read.now_ms = limit.clock.unix_ms();
  return read;
}

}  // namespace

Store::Store(const Options& options, const std::string& election)
    : connection_(std::make_shared<Connection>(options)),
      cell_(std::make_shared<Cell>(connection_, object_of(options, election))),
      commands_(connection_) {}

Result<Read> Store::read(const Limit& limit) {
  auto found = commands_.ask([cell = cell_, until = Until(limit)](auto&) { return cell->read(until); }, limit);
  if (!found) return found;
  return stamped(*std::move(found), limit);
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  auto written = next;
  written.written_ms = limit.clock.unix_ms();
  auto swap = commands_.ask([cell = cell_, expected, written,
                             until = Until(limit)](auto&) { return cell->replace(expected, written, until); },
                            limit);
  if (!swap) return swap;
  return Swap{swap->applied, stamped(std::move(swap->found), limit)};
}

std::optional<Version> Store::await_change(const std::optional<Version>&, const Limit& limit) {
  commands_.wait_out(limit);
  return std::nullopt;
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
  const auto done = commands_.ask(
      [cell = cell_, request, until = Until(limit)](auto&) -> Result<bool> {
        if (auto error = cell->request_step_down(request, until)) return *error;
        return true;
      },
      limit);
  if (!done) return done.error();
  return std::nullopt;
}

}  // namespace tenure::object
