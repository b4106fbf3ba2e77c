// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options and put the parts together.
#include <tenure/redis.hpp>

#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/lock_table.hpp>

#include "checkup.hpp"
#include "group_store.hpp"
#include "options.hpp"
#include "store.hpp"

namespace tenure::redis {
namespace {

#ifdef TENURE_REDIS_TLS
constexpr const char* remedy = "Set Options::tls, or write rediss:// in the URL";
#else
constexpr const char* remedy = "This build has no TLS: let a local TLS proxy such as stunnel carry the connection";
#endif

void warn_of_plain_text(const Options& options, const Warn& warn) {
  if (options.tls) return;
  for (const auto& server : options.servers)
    if (!loopback(server.host)) warn(unprotected("server " + to_string(server), remedy));
}

Options options_of(const Opening& opening) { return tenure::options_of(opening, &from); }

}  // namespace

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election, Log log) {
  return std::make_shared<Store>(options, election, std::string(), std::move(log));
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto store = std::make_shared<Store>(options, election, candidate.name, log);
  warn_of_plain_text(options, warnings(log, "election", election));
  return lock_table(std::move(store), election, std::move(candidate), std::move(log));
}

std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group, Log log) {
  auto store = std::make_shared<Group>(options, group, log);
  warn_of_plain_text(options, warnings(std::move(log), "group", group));
  return store;
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(options_of(opening), opening.election, opening.candidate, opening.log), presets()};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) { return check_up(options_of(opening), limit); }

ElectionList list_url(const Opening& opening) {
  const auto options = options_of(opening);
  warn_of_plain_text(options, warnings(opening.log, "election", "(all)"));
  return list_of(options, opening.log);
}

OpenedGroup open_group_url(const Opening& opening) {
  return {open_group(options_of(opening), opening.election, opening.log), presets()};
}

}  // namespace tenure::redis
