// SPDX-License-Identifier: Apache-2.0
// The store of one election: the requests that read and replace its record.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/object.hpp>

#include "connection.hpp"
#include "options.hpp"
#include "web/record.hpp"
#include "web/store.hpp"

namespace tenure::object {
namespace {

/// More would mean that somebody else writes the beats that we expect.
constexpr int most_tries = 4;

constexpr const char* step_down = "step_down";

/// A request to step down stands within the record: an object of its own would cost each renewal a second request.
std::string text_of(const Record& record, const std::optional<StepDown>& request) {
  auto json = web::json_of(record);
  if (request) json[step_down] = web::json_of(*request);
  return json.dump();
}

Result<Read> read_of(const std::string& text, const std::string& object) {
  auto json = web::parsed(text);
  std::optional<StepDown> request;
  if (json.is_object() && json.contains(step_down)) {
    request = web::step_down_of(json[step_down]);
    json.erase(step_down);
  }
  auto out = web::read_of(std::move(json), "the object " + object);
  if (out) out->step_down = std::move(request);
  return out;
}

/// The record of one election, read and replaced on condition. REQUIRES: used by one CallThread's calls.
class Cell {
 public:
  Cell(std::shared_ptr<Connection> connection, std::string object)
      : connection_(std::move(connection)), object_(std::move(object)) {}

  Result<Read> read(const Until& until) {
    if (auto error = look(until)) return *error;
    return seen_->read;
  }

  /// Of several beats any may stand there, and a request to step down may have been written beside it. Then the refused
  /// write had no effect, and the next one demands what was found.
  Result<Swap> replace(const std::optional<Expected>& expected, const Record& next, const Until& until) {
    if (!seen_ || !matches(expected, seen_->read.record))
      if (auto error = look(until)) return *error;
    for (int tries = 0; tries < most_tries && matches(expected, seen_->read.record); ++tries) {
      auto request = seen_->read.step_down;
      if (request && request->token != next.token) request.reset();
      const auto written = write(next, request, until);
      if (!written) return written.error();
      if (*written) return Swap{true, seen_->read};
    }
    return Swap{false, seen_->read};
  }

  /// A request for a tenure that is over would only take the place of a newer one.
  std::optional<Error> request_step_down(const StepDown& request, const Until& until) {
    if (auto error = look(until)) return error;
    for (int tries = 0; tries < most_tries; ++tries) {
      const auto& stands = seen_->read;
      if (!stands.record || stands.unreadable || stands.record->token != request.token) return std::nullopt;
      const auto written = write(*stands.record, request, until);
      if (!written) return written.error();
      if (*written) return std::nullopt;
    }
    return Error{Fault::unreachable, "the record of " + object_ + " changed at each try to write a request into it"};
  }

 private:
  /// What stands there, and what it means.
  struct Standing {
    std::optional<std::string> version;
    Read read;
  };
  std::optional<Error> look(const Until& until) {
    auto found = connection_->get(object_, until);
    if (!found) return std::move(found).error();
    if (!found->version) {
      seen_ = Standing{std::nullopt, Read{.absence_certain = true}};
      return std::nullopt;
    }
    auto read = read_of(found->body, object_);
    if (!read) return std::move(read).error();
    seen_ = Standing{std::move(found->version), *std::move(read)};
    return std::nullopt;
  }

  /// Writes it in place of what was seen. False: something else stands there, which is seen now.
  /// A refusal alone proves nothing: a proxy may have sent the write twice, or another one may be under way. It counts
  /// if a read then shows another version.
  Result<bool> write(const Record& record, const std::optional<StepDown>& request, const Until& until) {
    const auto demanded = seen_->version;
    auto version = connection_->put(object_, text_of(record, request), demanded, until);
    if (!version) return std::move(version).error();
    if (*version) {
      auto rounded = record;
      rounded.term = std::chrono::ceil<std::chrono::milliseconds>(record.term);
      seen_ = Standing{*std::move(version),
                       Read{.record = std::move(rounded), .step_down = request, .absence_certain = true}};
      return true;
    }
    if (auto error = look(until)) return *error;
    if (seen_->version != demanded) return false;
    return Error{Fault::unreachable, "the store refused a write of the object " + object_ +
                                         ", although what it was to replace stands there: " + connection_->refusal()};
  }

  const std::shared_ptr<Connection> connection_;
  const std::string object_;
  std::optional<Standing> seen_;  ///< Last. The next write demands it.
};

/// Nothing is pushed, so a follower looks once per renewal: it learns of a release within that time.
class Bucket final : public web::Store<Cell> {
 public:
  using web::Store<Cell>::Store;

  std::optional<Error> accepts(const Timing& timing) override {
    renew_ = timing.renew;
    return std::nullopt;
  }
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    const auto by = std::min(limit.by, limit.clock.now() + renew_);
    return web::Store<Cell>::await_change(seen, {limit.clock, by, limit.stop});
  }

 private:
  Clock::Duration renew_{max_term};
};

}  // namespace

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election) {
  const auto right = checked(options);
  auto connection = std::make_shared<Connection>(right);
  auto cell = std::make_shared<Cell>(connection, object_of(right, election));
  return std::make_shared<Bucket>(std::move(connection), std::move(cell));
}

}  // namespace tenure::object
