// SPDX-License-Identifier: Apache-2.0
// Tries each condition on an object of its own, and asks for the bucket's settings.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/object.hpp>

#include "connection.hpp"
#include "options.hpp"

namespace tenure::object {
namespace {

std::string told(const Error& error) { return printable(error.message, 1000); }

/// A text that no write before has had, so that it gets another ETag.
std::string new_text() { return "{\"tried\":\"" + draw_incarnation() + "\"}"; }

class Examined {
 public:
  Examined(const Options& options, Connection& connection, const Until& until)
      : options_(options), connection_(connection), until_(until), tried_(options.prefix + "/.doctor") {}

  Result<Checks> all(const std::string& object) {
    const auto found = connection_.get(object, until_);
    if (!found && found.error().fault != Fault::forbidden) return found.error();
    if (!found) {
      out_.push_back(Check::wrong("we may not read the election's object: " + told(found.error()),
                                  "mend what it says; a missing object must be told as missing"));
      return std::move(out_);
    }
    out_.push_back(
        Check::fine("the bucket " + options_.bucket + " answers by the credentials of " + connection_.source()));
    if (auto error = try_writes()) out_.push_back(*std::move(error));
    look_at_versions();
    look_at_lifecycle();
    return std::move(out_);
  }

 private:
  static Check unwritable(const Error& error) {
    return Check::wrong("we may read, but a write fails: " + told(error),
                        "mend what it says; one who only observes needs no write");
  }
  static Check lies(const std::string& what) {
    return Check::wrong("the server ignores " + what + ": every candidate would lead",
                        "upgrade the server to a release that honours conditional writes, or take another one");
  }

  /// A write whose condition should hold was.
  std::optional<Check> refused(const Demand& version) {
    const auto why = connection_.refusal();
    const auto stands = connection_.get(tried_, until_);
    if (!stands) return unwritable(stands.error());
    if (stands->version != version)
      return Check::doubtful("somebody else examines this bucket just now", "examine it again");
    return Check::wrong("the server refuses to replace an object, although its version stands there: " + why,
                        "let no retention, legal hold or lease be on what is below " + options_.prefix + "/");
  }

  /// A write by a version that is gone, and one that demands that there is no object, must both be refused.
  std::optional<Check> try_writes() {
    auto stands = connection_.get(tried_, until_);
    if (!stands) return unwritable(stands.error());
    const auto first = connection_.put(tried_, new_text(), stands->version, until_);
    if (!first) return unwritable(first.error());
    if (!*first) return refused(stands->version);
    const auto second = connection_.put(tried_, new_text(), *first, until_);
    if (!second) return unwritable(second.error());
    if (!*second) return refused(*first);
    if (**second == **first) return lies("what is written: two contents have one version");
    const auto stale = connection_.put(tried_, new_text(), *first, until_);
    if (!stale) return unwritable(stale.error());
    if (*stale) return lies("the version that a write demands (If-Match)");
    const auto made = connection_.put(tried_, new_text(), std::nullopt, until_);
    if (!made) return unwritable(made.error());
    if (*made) return lies("that a write demands that there is no object (If-None-Match)");
    out_.push_back(Check::fine("the server honours conditional writes; we may read and write"));
    return std::nullopt;
  }

  /// Each renewal keeps its predecessor, for ever if no rule takes it away.
  void look_at_versions() {
    if (is_on(Setting::versions).value_or(false))
      out_.push_back(Check::doubtful("the bucket keeps every version: each renewal adds an object of 400 bytes",
                                     "let a lifecycle rule delete noncurrent versions below " + options_.prefix +
                                         "/ after a day, or take a bucket without versions"));
  }

  void look_at_lifecycle() {
    const auto deletes = is_on(Setting::expiry);
    if (!deletes)
      out_.push_back(Check::doubtful("the bucket's lifecycle rules are not seen",
                                     "see to it that none deletes what is below " + options_.prefix + "/"));
    else if (*deletes)
      out_.push_back(Check::doubtful(
          "a lifecycle rule of the bucket deletes objects: a record that it deletes may make a second leader",
          "see to it that no rule expires what is below " + options_.prefix + "/"));
    else
      out_.push_back(Check::fine("no lifecycle rule deletes objects"));
  }

  std::optional<bool> is_on(Setting setting) {
    const auto& dialect = connection_.dialect();
    const auto request = dialect.ask_for(setting);
    if (!request) return std::nullopt;
    const auto answer = connection_.ask(*request, until_);
    return answer ? dialect.is_on(setting, *answer) : std::nullopt;
  }

  const Options& options_;
  Connection& connection_;
  const Until& until_;
  const std::string tried_;
  Checks out_;
};

}  // namespace

Result<Checks> check_url(const Opening& opening, const Limit& limit) {
  const auto options = checked(tenure::options_of(opening, &from));
  const auto connection = std::make_shared<Connection>(options);
  return CallThread(connection)
      .ask([connection, options, object = object_of(options, opening.election),
            until = Until(limit)](auto&) { return Examined(options, *connection, until).all(object); },
           limit);
}

}  // namespace tenure::object
