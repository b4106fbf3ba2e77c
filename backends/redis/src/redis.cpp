// SPDX-License-Identifier: Apache-2.0
#include <tenure/redis.hpp>

#include <tenure/kit/names.hpp>
#include <tenure/lock_table.hpp>

#include "options.hpp"
#include "store.hpp"

namespace tenure::redis {

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election, Log log) {
  return std::make_shared<Store>(options, election, std::string(), std::move(log));
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto record = std::make_shared<Store>(options, election, candidate.name, log);
  return lock_table(std::move(record), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(from(parse_url(opening)), opening.election, opening.candidate, opening.log), presets()};
}

}  // namespace tenure::redis
