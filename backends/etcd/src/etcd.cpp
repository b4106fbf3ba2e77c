// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options and put the parts together.
#include <tenure/etcd.hpp>

#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/lock_table.hpp>

#include "checkup.hpp"
#include "options.hpp"
#include "store.hpp"

namespace tenure::etcd {

namespace {

void warn_of_plain_text(const Options& options, const std::string& election, const Log& log) {
  for (const auto& server : options.servers)
    if (!options.tls && !loopback(server.host))
      tell(log, Level::warning,
           unprotected("member " + to_string(server), "Set Options::tls, or write etcds:// in the URL"),
           {{"election", election}, {"store", "etcd"}});
}

Options options_of(const Opening& opening) { return tenure::options_of(opening, &from); }

}  // namespace

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election, Log log) {
  return std::make_shared<Store>(options, election, std::move(log));
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto made = store(options, election, log);
  warn_of_plain_text(options, election, log);
  return lock_table(std::move(made), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(options_of(opening), opening.election, opening.candidate, opening.log), presets()};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) {
  return check_up(options_of(opening), opening.election, limit);
}

ElectionList list_url(const Opening& opening) {
  const auto options = options_of(opening);
  auto list = list_of(options);
  warn_of_plain_text(options, "(all)", opening.log);
  return list;
}

}  // namespace tenure::etcd
