// SPDX-License-Identifier: Apache-2.0
#include <tenure/redis.hpp>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/lock_table.hpp>

#include "options.hpp"
#include "store.hpp"

namespace tenure::redis {
namespace {

#ifdef TENURE_REDIS_TLS
constexpr const char* remedy = "Set Options::tls, or write rediss:// in the URL";
#else
constexpr const char* remedy = "This build has no TLS: let a local TLS proxy such as stunnel carry the connection";
#endif

void warn(const Log& log, const Options& options, const std::string& election) {
  if (options.tls) return;
  for (const auto& server : options.servers)
    if (!loopback(server.host))
      tell(log, Level::warning, unprotected("server " + to_string(server), remedy),
           {{"election", election}, {"store", "redis"}});
}

}  // namespace

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election, Log log) {
  return std::make_shared<Store>(options, election, std::string(), std::move(log));
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto store = std::make_shared<Store>(options, election, candidate.name, log);
  warn(log, options, election);
  return lock_table(std::move(store), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(from(parse_url(opening)), opening.election, opening.candidate, opening.log), presets()};
}

}  // namespace tenure::redis
