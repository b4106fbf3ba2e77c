// SPDX-License-Identifier: Apache-2.0
// What a GroupStore does that offers no more than it must; and the check of a commit.
#include <tenure/group_store.hpp>

#include <algorithm>
#include <stdexcept>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/wait.hpp>

namespace tenure {
namespace {

template <class Change>
std::vector<std::string> names_of(const std::vector<Change>& changes) {
  std::vector<std::string> names;
  names.reserve(changes.size());
  for (const auto& change : changes) names.push_back(change.election);
  return names;
}

/// A store locks in this order, so that two commits never wait for each other.
void check_sorted(const std::vector<std::string>& names) {
  const auto wrong = std::adjacent_find(names.begin(), names.end(), std::greater_equal<>());
  if (wrong != names.end())
    throw std::invalid_argument("\"" + printable(wrong[1], 40) + "\" stands after \"" + printable(wrong[0], 40) +
                                "\"; claims and releases are sorted by name, and have each name once");
}

void check_commit(const Commit& commit) {
  if (const auto changes = commit.claims.size() + commit.releases.size(); changes > max_changes)
    throw std::invalid_argument("it has " + std::to_string(changes) + " changes; at most " +
                                std::to_string(max_changes) + " are allowed");
  const auto claims = names_of(commit.claims), releases = names_of(commit.releases);
  check_sorted(claims);
  check_sorted(releases);
  std::vector<std::string> both;
  std::set_intersection(claims.begin(), claims.end(), releases.begin(), releases.end(), std::back_inserter(both));
  if (!both.empty())
    throw std::invalid_argument("\"" + printable(both.front(), 40) +
                                "\" is claimed and released; one of both is allowed");
  for (const auto& names : {claims, releases})
    for (const auto& name : names) check_election(name);
}

}  // namespace

std::optional<Error> refused_commit(const Commit& commit) try {
  check_commit(commit);
  return std::nullopt;
} catch (const std::invalid_argument& e) {
  return Error{Fault::misconfigured, std::string("commit: ") + e.what()};
}

std::optional<Error> refused_retirement(const std::map<std::string, Token>& leads) {
  for (const auto& [election, token] : leads)
    if (token >= greatest_lead_token)
      return Error{Fault::misconfigured, "retire: the token of \"" + printable(election, 80) + "\" is " +
                                             std::to_string(token.value) +
                                             ", which no token can follow; mend that lead first"};
  if (leads.size() <= max_changes) return std::nullopt;
  return Error{Fault::misconfigured, "retire: it names " + std::to_string(leads.size()) + " elections; at most " +
                                         std::to_string(max_changes) + " are allowed"};
}

Exclusive GroupStore::exclusive() const { return Exclusive::yes; }

bool GroupStore::allots() const { return false; }

void GroupStore::joined(const std::string&) {}

void GroupStore::left(const std::string&) {}

Result<std::set<std::string>> GroupStore::retire(const std::map<std::string, Token>&, const Limit&) {
  return Error{Fault::misconfigured, "retire: this store keeps no lead of an election that nobody joins"};
}

std::optional<Release> GroupStore::await_change(const std::string&, const Limit& limit) {
  wait_out(limit);
  return std::nullopt;
}

std::optional<Error> GroupStore::accepts(const Timing&) { return std::nullopt; }

}  // namespace tenure
