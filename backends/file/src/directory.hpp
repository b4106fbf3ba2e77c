// SPDX-License-Identifier: Apache-2.0
// The directory of one election: what it is called, whether it will do, what is in it.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/error.hpp>
#include <tenure/result.hpp>
#include <tenure/token.hpp>

#include "descriptor.hpp"

namespace tenure::file {

/// The election's path below the directory. It is percent-encoded, and cut into pieces if it is too long for one name.
/// Every piece but the last ends with '~', which no encoded name has, so that elections never share a directory.
std::vector<std::string> encoded(std::string_view election);

/// The election that encoded() makes this of, if there is one.
std::optional<std::string> decoded(const std::vector<std::string>& pieces);

/// Says why a file system of this kind (statfs f_type) is unfit. Returns nothing if it will do.
std::optional<std::string> unfit_file_system(std::uint64_t type);

/// The limits of encoded(), which writes at most three characters for a byte.
inline constexpr std::size_t longest_name = 240;  // file systems take 255 bytes, and some that encrypt take fewer
inline constexpr std::size_t most_pieces = 3 * max_election_bytes / (longest_name - 2) + 1;

struct Listing {
  std::vector<std::uint64_t> tenures;  ///< Ascending, without 0.
  std::vector<Token> step_downs;
  bool others{};  ///< There is something that no election has.
  std::uint64_t newest() const { return tenures.empty() ? 0 : tenures.back(); }
};

/// What a look or a claim does with a directory that is missing. A look makes nothing, not even for a moment.
enum class Missing { stays, is_made };

/// Whoever may write to a directory may put something else in the place of what is below it, at any moment. So we name
/// nothing twice: what is judged is open already, and the next step goes on from there.
class ElectionDirectory {
 public:
  /// Does nothing yet.
  ElectionDirectory(const std::filesystem::path& directory, std::string_view election);

  /// Makes sure that the descriptor is open and is what stands at the path now. False: nothing stands there.
  Result<bool> enter(Missing missing);

  /// Whether the directory that enter() opened still stands at its path. An error says why that cannot be told.
  Result<bool> stands() const;

  /// Returns all names, as they stood together at one moment.
  Result<Listing> list() const;

  /// A file that appears whole once it gets its name, or never.
  Result<Descriptor> unnamed_file() const;

  int get() const { return descriptor_.get(); }
  FileId id() const { return descriptor_.id(); }
  const std::string& path() const { return path_; }
  std::string path_of(std::string_view name) const { return path_ + '/' + std::string(name); }
  unsigned permissions() const;  ///< Its own, as they are now. What is made there is to be as readable.

 private:
  /// A directory on the way.
  struct Place {
    Descriptor directory;  ///< The walk goes on from here.
    std::string path;      ///< Messages name it.
    struct stat now {};
    bool open_to_all() const { return (now.st_mode & S_IWOTH) != 0; }
  };

  /// Opens the next directory of the way. Without one it is missing.
  Result<Place> below(const Place& parent, const std::string& name, Missing missing) const;
  std::optional<Error> judge_file_system(int directory) const;

  std::vector<std::string> names_;  ///< The path of the directory that the user named, and the names below it.
  std::string path_;
  Descriptor descriptor_;
};

inline std::string step_down_name(Token token) { return "step_down." + std::to_string(token.value); }

}  // namespace tenure::file
