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

struct Listing {
  std::vector<std::uint64_t> tenures;  ///< Ascending, without 0.
  std::vector<Token> step_downs;
  std::uint64_t newest() const { return tenures.empty() ? 0 : tenures.back(); }
};

class ElectionDirectory {
 public:
  /// Does nothing yet.
  ElectionDirectory(const std::filesystem::path& directory, std::string_view election);

  /// Makes sure that the descriptor is open and is what stands at the path now; makes missing directories.
  std::optional<Error> enter();

  /// Whether the directory that enter() opened still stands at its path. An error says why that cannot be told.
  Result<bool> stands() const;

  /// Returns all names, as they stood together at one moment.
  Result<Listing> list() const;

  int get() const { return descriptor_.get(); }
  FileId id() const { return descriptor_.id(); }
  const std::string& path() const { return path_; }
  std::string path_of(std::string_view name) const { return path_ + '/' + std::string(name); }
  unsigned permissions() const { return permissions_; }

 private:
  static std::optional<Error> judge(const struct stat& now, const std::string& path, bool top, bool open_to_all);
  /// Makes what is missing. Returns whether everybody can put something into the directory that the user named.
  Result<bool> make() const;
  std::optional<Error> open(bool open_to_all);
  std::optional<Error> check(const Descriptor& opened, bool open_to_all);

  std::vector<std::string> steps_;  ///< The directory, and those below it that we may make.
  std::string path_;
  Descriptor descriptor_;
  unsigned permissions_{};
};

inline std::string step_down_name(Token token) { return "step_down." + std::to_string(token.value); }

}  // namespace tenure::file
