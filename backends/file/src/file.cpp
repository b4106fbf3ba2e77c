// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options and put the parts together.
#include <tenure/file.hpp>

#include <climits>
#include <functional>
#include <stdexcept>
#include <utility>

#include <tenure/kit/url.hpp>
#include <tenure/lock_table.hpp>

#include "election_list.hpp"
#include "store.hpp"

namespace tenure::file {

std::shared_ptr<ConditionalStore> store(const std::filesystem::path& directory, const std::string& election) {
  return std::make_shared<Store>(directory, election);
}

std::shared_ptr<Backend> open(const std::filesystem::path& directory, const std::string& election, Candidate candidate,
                              Log log) {
  return lock_table(store(directory, election), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

namespace {

/// Checked, and without a query that nobody reads.
struct Place {
  std::string directory;
  int witness{-1};
};

Place place_of(const Opening& opening) {
  auto url = parse_url(opening);
  if (url.scheme != "file" || !url.hosts.empty() || !url.user.empty() || !url.password.empty() || opening.credentials ||
      !url.path.starts_with('/'))
    throw std::invalid_argument(
        "file: a URL is \"file:///directory\": an absolute path, without host, user, password and credentials");
  if (url.path.find_first_not_of('/') == url.path.npos)
    throw std::invalid_argument(
        "file: the URL names the root directory; name one for elections: \"file:///run/tenure\"");
  Place out{.directory = url.path};
  url.take("witness", out.witness, 0, INT_MAX);  // a descriptor
  url.expect_no_more();
  return out;
}

}  // namespace

Opened open_url(const Opening& opening) {
  const auto [directory, witness] = place_of(opening);
  auto kept = std::make_shared<Store>(directory, opening.election, std::function<void(Step)>(), witness);
  return {.backend = lock_table(std::move(kept), opening.election, opening.candidate, opening.log),
          .presets = presets()};
}

ElectionList list_url(const Opening& opening) { return list_of(place_of(opening).directory); }

}  // namespace tenure::file
