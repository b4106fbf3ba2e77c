// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options and put the parts together.
#include <tenure/object.hpp>

#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/lock_table.hpp>

#include "options.hpp"

namespace tenure::object {
namespace {

void warn_of_plain_text(const Options& options, const std::string& election, const Log& log) {
  const auto server = server_of(options);
  if (server.tls || loopback(server.name)) return;
  tell(log, Level::warning, unprotected("server " + server.host, "Write https:// in Options::endpoint"),
       {{"election", election}, {"store", "object"}});
}

Options options_of(const Opening& opening) { return tenure::options_of(opening, &from); }

/// A call may take longer than elsewhere, whatever the term.
Timing timing(Clock::Duration term) {
  auto out = Timing::of(term);
  out.call = std::chrono::seconds(2);
  out.retry = std::chrono::milliseconds(500);
  return out;
}

}  // namespace

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto made = store(options, election);
  warn_of_plain_text(options, election, log);
  return lock_table(std::move(made), election, std::move(candidate), std::move(log));
}

Presets presets() {
  using std::chrono::seconds;
  return {.fast = timing(seconds(15)), .balanced = timing(seconds(30)), .steady = timing(seconds(60))};
}

Opened open_url(const Opening& opening) {
  return {open(options_of(opening), opening.election, opening.candidate, opening.log), presets()};
}

}  // namespace tenure::object
