// SPDX-License-Identifier: Apache-2.0
#include <tenure/stores.hpp>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/file.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/memory.hpp>
#ifdef TENURE_WITH_KAFKA
#include <tenure/kafka.hpp>
#define TENURE_OPEN_KAFKA kafka::open_url
#else
#define TENURE_OPEN_KAFKA nullptr
#endif
#ifdef TENURE_WITH_POSTGRES
#include <tenure/postgres.hpp>
#define TENURE_OPEN_POSTGRES postgres::open_url
#else
#define TENURE_OPEN_POSTGRES nullptr
#endif
#ifdef TENURE_WITH_REDIS
#include <tenure/redis.hpp>
#define TENURE_OPEN_REDIS redis::open_url
#else
#define TENURE_OPEN_REDIS nullptr
#endif

namespace tenure {
namespace {

struct Scheme {
  std::string_view name;
  Opened (*open)(const Opening&);  ///< Null: not in this build.
  std::string_view option;         ///< That puts it there.
};

constexpr Scheme schemes[] = {
    {"memory", memory::open_url, ""},
    {"file", file::open_url, ""},
    {"kafka", TENURE_OPEN_KAFKA, "TENURE_KAFKA"},
    {"postgres", TENURE_OPEN_POSTGRES, "TENURE_POSTGRES"},
    {"postgresql", TENURE_OPEN_POSTGRES, "TENURE_POSTGRES"},
    {"redis", TENURE_OPEN_REDIS, "TENURE_REDIS"},
    {"rediss", TENURE_OPEN_REDIS, "TENURE_REDIS"},
    {"redis+unix", TENURE_OPEN_REDIS, "TENURE_REDIS"},
    {"redis+sentinel", TENURE_OPEN_REDIS, "TENURE_REDIS"},
};

[[noreturn]] void refuse(const std::string& what) {
  std::string there;
  for (const auto& scheme : schemes)
    if (scheme.open) there += (there.empty() ? "" : ", ") + std::string(scheme.name);
  throw std::invalid_argument("tenure::open: " + what + " This build has: " + there);
}

[[noreturn]] void refuse_unknown(const std::string& name, bool shown) {
  std::vector<std::string_view> names;
  for (const auto& scheme : schemes) names.push_back(scheme.name);
  const auto meant = did_you_mean(name, names);
  refuse((shown ? "there is no store \"" + printable(name, 40) + "\"" : std::string("the URL's scheme is unknown")) +
         (meant.empty() ? "." : meant));
}

}  // namespace

Opened open(const Opening& opening) {
  const auto scheme = scheme_of(opening.url);
  if (!scheme) refuse("a URL begins with a scheme and a ':', for instance file:///directory.");
  const auto& name = *scheme;
  const auto found =
      std::find_if(std::begin(schemes), std::end(schemes), [&](const auto& s) { return s.name == name; });
  // In "user:password@host" the user would be taken for a scheme.
  if (found == std::end(schemes)) refuse_unknown(name, opening.url.compare(name.size(), 3, "://") == 0);
  if (!found->open)
    refuse("the store \"" + name + "\" was left out of this build; configure it with -D" + std::string(found->option) +
           "=ON.");
  return found->open(opening);
}

Opened open(std::string_view url, std::string_view election, Candidate candidate, Log log) {
  return open({.url = std::string(url),
               .election = std::string(election),
               .candidate = std::move(candidate),
               .log = std::move(log)});
}

}  // namespace tenure
