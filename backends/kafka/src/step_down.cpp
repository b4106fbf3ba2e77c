// SPDX-License-Identifier: Apache-2.0
// A request to step down, from a process that need not be a candidate: rule 20 of README.md. It reads the record and
// commits the request by handles of its own.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/wait.hpp>

#include "client.hpp"
#include "create_topic.hpp"
#include "neli_threads.hpp"
#include "reaper.hpp"
#include "record.hpp"

namespace tenure::kafka {
namespace {

using std::chrono::milliseconds;

/// The reaper closes the client, because a commit that no coordinator took keeps a handle for the time of a session.
std::shared_ptr<Client> closed_aside(std::shared_ptr<Client> client) {
  auto* const it = client.get();
  auto& reaper = Reaper::instance();  // here, because it may throw
  return {it, [client = std::move(client), &reaper](Client*) mutable {
            try {
              reaper.close(std::move(client), [] {});
            } catch (const std::bad_alloc&) {  // It was destroyed instead, which takes longer.
            }
          }};
}

/// A commit without membership is accepted, because the group of requests has no members.
std::optional<Error> write_request(Client& client, const Commit& request, const Limit& limit) {
  const std::shared_ptr<Waker> waker = boot_clock().make_waker();
  client.on_events(waker);
  if (const auto code = client.commit(1, 0, request)) return client.explained(code, "offset commit");
  while (!limit.passed()) {
    while (const auto event = client.next_event()) {
      if (event->kind == Client::Event::Kind::committed)
        return event->code ? std::optional(client.explained(event->code, "offset commit")) : std::nullopt;
      if (needs_the_user(event->code)) return client.explained(event->code, event->text);
    }
    wait(*waker, limit);
  }
  return Error{Fault::timed_out, "kafka: the request was not acknowledged in time. It may be stored all the same"};
}

/// Asks the present leader to step down, by handles of its own, because a process that only asks takes no part. It
/// finds the request's token itself. REQUIRES: the options are completed. Throws if no handle can be made.
std::optional<Error> ask_to_step_down(const Options& options, const std::shared_ptr<ClosableLog>& log,
                                      const StepDown& request, const Limit& limit) {
  const Limit own{boot_clock(), by_boot_clock(limit), limit.stop};
  const auto left = [&] {
    const auto ms = std::chrono::duration_cast<milliseconds>(own.by - boot_clock().now());
    return std::clamp(ms, milliseconds(1), milliseconds(2000));
  };
  const auto observer = closed_aside(make_observer(options, options.group, log));
  // Each step blocks and knows no stop token, so that a stop is looked for between them.
  const Error late{Fault::timed_out, "kafka: the call ended before the request was written"};
  bool missing = false;
  auto partitions = observer->partitions(left(), missing);
  if (!partitions) return std::move(partitions).error();
  if (auto error = too_few(*partitions, options)) return error;
  if (own.passed()) return late;
  auto found = observer->with_reason(observer->committed(1, left()));
  if (!found) return std::move(found).error();
  const auto& record = (*found)[0];
  const auto said = record ? decode(record->metadata) : std::nullopt;
  if (!said || said->released) return std::nullopt;
  if (own.passed()) return late;
  const auto requests = closed_aside(make_observer(options, requests_group(options.group), log));
  return write_request(*requests, {record->offset, encode(request)}, own);
}

}  // namespace

std::optional<Error> KafkaBackend::request_step_down(const std::string& by, const std::string& why,
                                                     const Limit& limit) try {
  if (auto error = refused_step_down(by, why)) return error;
  if (threads_.forked()) return threads_.unanswered(limit);
  return ask_to_step_down(options(), log(), {.token = {}, .by = by, .why = why}, limit);
} catch (const std::exception& e) {  // no thread or descriptor more
  return Error{Fault::unreachable, e.what()};
}

}  // namespace tenure::kafka
