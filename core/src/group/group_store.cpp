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

/// A store locks in the order of the names, so that two commits never wait for each other.
template <class Change>
void check_names(const std::vector<Change>& changes) {
  for (const auto& change : changes) check_election(change.election);
  const auto after = [](const Change& a, const Change& b) { return a.election >= b.election; };
  const auto wrong = std::adjacent_find(changes.begin(), changes.end(), after);
  if (wrong != changes.end())
    throw std::invalid_argument("\"" + printable(wrong[1].election, 40) + "\" stands after \"" +
                                printable(wrong[0].election, 40) +
                                "\"; claims and releases are sorted by name, and have each name once");
}

void check_commit(const Commit& commit) {
  if (const auto changes = commit.claims.size() + commit.releases.size(); changes > max_changes)
    throw std::invalid_argument("it has " + std::to_string(changes) + " changes; at most " +
                                std::to_string(max_changes) + " are allowed");
  check_names(commit.claims);
  check_names(commit.releases);
  for (const auto& claim : commit.claims)
    if (std::ranges::binary_search(commit.releases, claim.election, {}, &Release::election))
      throw std::invalid_argument("\"" + printable(claim.election, 40) +
                                  "\" is claimed and released; one of both is allowed");
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
