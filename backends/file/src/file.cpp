// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options, put the parts together, and list elections.
#include <tenure/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/lock_table.hpp>

#include "directory.hpp"
#include "store.hpp"

namespace tenure::file {

// ---- the elections below a directory: it walks through the directories, and looks into each election ----

namespace {

constexpr std::size_t page = 200;

using Directory = CHandle<DIR, ::closedir>;

/// `flags`: further ones of open(2). Nothing: errno says why.
Directory open_at(int parent, const char* name, int flags) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  Directory opened(fd < 0 ? nullptr : ::fdopendir(fd));
  if (!opened && fd >= 0) ::close(fd);
  return opened;
}

bool is_directory(int parent, const char* name) {
  struct stat now {};
  return ::fstatat(parent, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(now.st_mode);
}

/// Adds the elections below the directory of the `pieces`. What is not ours is passed over. False if the limit passed.
Result<bool> find(const Directory& directory, const std::string& path, std::vector<std::string>& pieces,
                  std::vector<std::string>& out, const Limit& limit) {
  const int here = ::dirfd(directory.get());
  for (;;) {
    errno = 0;
    const auto* entry = ::readdir(directory.get());  // NOLINT(concurrency-mt-unsafe): nobody else has this stream
    if (!entry && errno != 0) return system_error("cannot list", path, errno);
    if (!entry) return true;
    if (limit.passed()) return false;
    pieces.emplace_back(entry->d_name);
    if (auto name = decoded(pieces)) {
      if (is_directory(here, entry->d_name)) out.push_back(*std::move(name));
    } else if (pieces.back().ends_with('~') && pieces.size() < most_pieces && is_directory(here, entry->d_name)) {
      const auto deeper = open_at(here, entry->d_name, O_NOFOLLOW);
      const auto there = path + '/' + pieces.back();
      if (!deeper && errno != EACCES) return system_error("cannot list", there, errno);
      if (!deeper) {  // somebody else's
        pieces.pop_back();
        continue;
      }
      if (auto whole = find(deeper, there, pieces, out, limit); !whole || !*whole) return whole;
    }
    pieces.pop_back();
  }
}

ListedElection look_at(const std::filesystem::path& directory, const std::string& election, const Limit& limit) try {
  const auto found = Store(directory, election).read(limit);
  return listed(election, found, boot_clock().now());
} catch (const std::exception& e) {
  return listed(election, Error{Fault::misconfigured, e.what()}, boot_clock().now());
}

/// Ascending.
Result<std::vector<std::string>> names_in(const std::filesystem::path& directory, const Limit& limit) {
  std::vector<std::string> pieces, names;
  const auto top = open_at(AT_FDCWD, directory.c_str(), 0);
  if (!top && errno == ENOENT)
    return Error{Fault::misconfigured, directory.string() + " is missing; the first candidate makes it"};
  if (!top) return system_error("cannot list", directory.string(), errno);
  const auto whole = find(top, directory.string(), pieces, names, limit);
  if (!whole) return whole.error();
  if (!*whole) return Error{Fault::timed_out, "the limit passed before " + directory.string() + " was listed"};
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ElectionList list_of(const std::filesystem::path& directory) {
  return [directory, names = std::optional<std::vector<std::string>>(),
          told = std::size_t{}](const Limit& limit) mutable -> Result<ElectionPage> {
    if (!names) {
      auto found = names_in(directory, limit);
      if (!found) return std::move(found).error();
      names = *std::move(found);
    }
    ElectionPage out;
    for (auto at = told; at < std::min(told + page, names->size()); ++at) {
      if (limit.passed()) return Error{Fault::timed_out, "the limit passed before a page of elections was read"};
      out.elections.push_back(look_at(directory, (*names)[at], limit));
    }
    told += out.elections.size();
    out.last = told == names->size();
    return out;
  };
}

// ---- public functions ----

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
