// SPDX-License-Identifier: Apache-2.0
// The table of schemes, and the functions that open a URL by it.
#include <tenure/stores.hpp>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/kit/url.hpp>

#include <registered_stores.hpp>

namespace tenure {
namespace {

struct Scheme {
  std::string_view name;
  Opened (*open)(const Opening&);  ///< Null: not in this build.
  OpenedGroup (*open_group)(const Opening&);
  ElectionList (*list)(const Opening&);
  Result<Checks> (*check_up)(const Opening&, const Limit&);  ///< Null: there is nothing to check.
  std::string_view option;                                   ///< That puts it there.
};

constexpr Scheme schemes[] = {TENURE_SCHEMES};

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

/// The scheme of the URL, of a store that is in this build.
const Scheme& found(const Opening& opening) {
  const auto scheme = scheme_of(opening.url);
  if (!scheme) refuse("a URL begins with a scheme and a ':', for instance file:///directory.");
  const auto& name = *scheme;
  const auto it = std::find_if(std::begin(schemes), std::end(schemes), [&](const auto& s) { return s.name == name; });
  // In "user:password@host" the user would be taken for a scheme.
  if (it == std::end(schemes)) refuse_unknown(name, opening.url.compare(name.size(), 3, "://") == 0);
  if (!it->open)
    refuse("the store \"" + name + "\" was left out of this build; configure it with -D" + std::string(it->option) +
           "=ON.");
  return *it;
}

/// `can`: what a scheme has that does it.
template <class Function>
[[noreturn]] void refuse_what_others_do(const char* function, const Scheme& scheme, const char* refusal,
                                        Function Scheme::*can) {
  std::string able;
  for (const auto& one : schemes)
    if (one.*can) able += (able.empty() ? "" : ", ") + std::string(one.name);
  throw std::invalid_argument(std::string(function) + ": the store \"" + std::string(scheme.name) + "\" " + refusal +
                              ". In this build these do: " + able);
}

}  // namespace

Opened open(const Opening& opening) { return found(opening).open(opening); }

OpenedGroup open_many(const Opening& opening) {
  const auto& scheme = found(opening);
  if (!scheme.open_group)
    refuse_what_others_do("tenure::open_many", scheme, "keeps no groups of elections: elect each by open()",
                          &Scheme::open_group);
  return scheme.open_group(opening);
}

ElectionList list_elections(const Opening& opening) {
  const auto& scheme = found(opening);
  if (!scheme.list)
    refuse_what_others_do("tenure::list_elections", scheme, "cannot list its elections: ask for one by its name",
                          &Scheme::list);
  return scheme.list(opening);
}

Result<Checks> check_up(const Opening& opening, const Limit& limit) {
  const auto& scheme = found(opening);
  return scheme.check_up ? scheme.check_up(opening, limit) : Checks{};
}

OpenedGroup open_many(std::string_view url, std::string_view group, Log log) {
  return open_many({.url = std::string(url), .election = std::string(group), .log = std::move(log)});
}

Opened open(std::string_view url, std::string_view election, Candidate candidate, Log log) {
  return open({.url = std::string(url),
               .election = std::string(election),
               .candidate = std::move(candidate),
               .log = std::move(log)});
}

}  // namespace tenure
