// SPDX-License-Identifier: Apache-2.0
// Makes, judges and lists the directory of an election.
#include "directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>

#include <tenure/candidate.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::file {
namespace {

/// Decimal without leading zeros, as we write it.
std::optional<std::uint64_t> token_of(std::string_view text) {
  return text.starts_with('0') ? std::nullopt : number<std::uint64_t>(text);
}

void note(std::string_view name, Listing& listing) {
  constexpr std::string_view step_down = "step_down.";
  const bool asks = name.starts_with(step_down);
  const auto n = token_of(asks ? name.substr(step_down.size()) : name);
  if (n && asks)
    listing.step_downs.push_back({*n});
  else if (n)
    listing.tenures.push_back(*n);
  else if (name != "." && name != "..")
    listing.others = true;
}

/// The directory cannot change within one call. Over several calls, a name that was always there may be missed.
/// Returns false if one call was not enough.
Result<bool> list_once(int directory, const std::string& path, Listing& listing) {
  alignas(dirent64) std::array<char, 32768> buffer;
  if (::lseek(directory, 0, SEEK_SET) < 0) return system_error("cannot list", path, errno);
  for (bool first = true;; first = false) {
    const auto got = ::getdents64(directory, buffer.data(), buffer.size());
    if (got < 0) return system_error("cannot list", path, errno);
    if (got == 0) return true;
    if (!first) return false;
    for (auto at = buffer.data(); at < buffer.data() + got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(at);
      note(entry->d_name, listing);
      at += entry->d_reclen;
    }
  }
}

unsigned permissions_below(unsigned mode) {
  // Everybody can write to a directory like /tmp, so below it the owner alone may.
  return (mode & S_IWOTH) != 0 ? 0700 : (mode & 02775) | 0700;
}

/// If everybody can write to the `parent`, everybody could have put this there. Above the top we do not look.
std::optional<Error> judge(const struct stat& now, const std::string& path, bool top, bool parent_open_to_all) {
  // We make no link below the directory that the user named.
  if (S_ISLNK(now.st_mode))
    return Error{
        Fault::misconfigured,
        path + " is a symbolic link; remove it, or name the directory that holds the elections by its own path"};
  if (!S_ISDIR(now.st_mode))
    return Error{Fault::misconfigured, path + " is not a directory; name one, or remove that file"};
  const auto us = ::geteuid();
  if (parent_open_to_all && now.st_uid != 0 && now.st_uid != us)
    return Error{Fault::forbidden, path + " belongs to user " + std::to_string(now.st_uid) +
                                       ", who could forge a leader; it must belong to root or to user " +
                                       std::to_string(us) + ". To share it: chown root:GROUP, chmod 2770"};
  if ((now.st_mode & S_IWOTH) != 0 && !(top && (now.st_mode & S_ISVTX) != 0))
    return Error{Fault::forbidden,
                 path + " can be written by everybody, who could then forge a leader; chmod o-w " + path};
  return std::nullopt;
}

/// Gives a directory that we made the rights of its parent, which the umask may have taken away. Somebody may have put
/// another directory of ours in its place, so it must be empty, or an election's: of a process that was quicker.
std::optional<Error> share(int parent, const std::string& name, const std::string& path, unsigned mode) {
  const auto made =
      Descriptor::take([&] { return ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); });
  struct stat now {};
  if (!made || ::fstat(made.get(), &now) != 0) return system_error("cannot open the directory", path, errno);
  if (now.st_uid != ::geteuid() || (now.st_mode & 07777) == mode) return std::nullopt;
  Listing listing;
  const auto whole = list_once(made.get(), path, listing);
  if (!whole || !*whole || listing.others) return std::nullopt;
  if (::fchmod(made.get(), mode) != 0) return system_error("cannot set the permissions of", path, errno);
  return std::nullopt;
}

bool has_parent(const std::string& path) {
  return ::access(std::filesystem::path(path).parent_path().c_str(), F_OK) == 0;
}

std::optional<Error> make_at(int parent, const std::string& name, const std::string& path, unsigned mode) {
  if (::mkdirat(parent, name.c_str(), mode) != 0)
    return errno == EEXIST ? std::nullopt : std::optional(system_error("cannot make the directory", path, errno));
  auto error = share(parent, name, path, mode);
  if (error) ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);  // Nobody would mend its rights later.
  return error;
}

}  // namespace

std::vector<std::string> encoded(std::string_view election) {
  std::vector<std::string> pieces(1);
  for (const char c : election) {
    if (pieces.back().size() + 3 > longest_name) {
      pieces.back() += '~';
      pieces.emplace_back();
    }
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || (c == '.' && !pieces.back().empty());
    pieces.back() += plain ? std::string(1, c) : percent(c);
  }
  return pieces;
}

std::optional<std::string> decoded(const std::vector<std::string>& pieces) {
  std::string whole;
  for (const auto& piece : pieces) whole += piece.substr(0, piece.find('~'));  // the next piece goes on
  auto name = percent_decoded(whole, max_election_bytes);
  if (!name || encoded(*name) != pieces) return std::nullopt;
  return name;
}

std::optional<std::string> unfit_file_system(std::uint64_t type) {
  static constexpr std::uint64_t local[] = {
      0xEF53 /* ext2, ext3, ext4 */, 0x58465342 /* xfs */,       0x9123683E /* btrfs */, 0x01021994 /* tmpfs */,
      0xF2F52010 /* f2fs */,         0x794C7630 /* overlayfs */, 0x2FC12FC1 /* zfs */,   0xCA451A4E /* bcachefs */,
      0x3153464A /* jfs */,          0x3434 /* nilfs2 */,        0x24051905 /* ubifs */, 0x858458F6 /* ramfs */};
  if (std::find(std::begin(local), std::end(local), type) != std::end(local)) return std::nullopt;
  char hex[24];
  std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(type));
  return std::string("is on a file system of type ") + hex +
         ", not known to be local. On NFS, SMB, FUSE and the like the kernel cannot tell that a process of another "
         "host died. Use a directory on a local disk (ext4, xfs, btrfs) or on a tmpfs such as /run. For processes of "
         "several hosts use a store with a server";
}

ElectionDirectory::ElectionDirectory(const std::filesystem::path& directory, std::string_view election) {
  path_ = std::filesystem::absolute(directory).lexically_normal().string();
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  names_.push_back(path_);
  for (const auto& piece : encoded(election)) {
    path_ += '/' + piece;
    names_.push_back(piece);
  }
}

Result<bool> ElectionDirectory::stands() const {
  struct stat now {};
  if (::lstat(path_.c_str(), &now) == 0)
    return descriptor_.ours() && FileId{now.st_dev, now.st_ino} == descriptor_.id();
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return system_error("cannot look at", path_, errno);
}

Result<bool> ElectionDirectory::enter(Missing missing) {
  auto stands_now = stands();
  if (!stands_now || *stands_now) return stands_now;
  descriptor_.close();
  Place at;
  for (const auto& name : names_) {
    auto next = below(at, name, missing);
    if (!next) return std::move(next).error();
    if (!next->directory) {
      if (auto error = at.directory ? judge_file_system(at.directory.get()) : std::nullopt) return *std::move(error);
      return false;
    }
    at = *std::move(next);
  }
  auto opened = Descriptor::take([&] { return ::openat(at.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (!opened) return system_error("cannot open the directory", path_, errno);
  if (auto error = judge_file_system(opened.get())) return *std::move(error);
  descriptor_ = std::move(opened);
  return true;
}

Result<ElectionDirectory::Place> ElectionDirectory::below(const Place& parent, const std::string& name,
                                                          Missing missing) const {
  const bool top = &name == &names_.front();
  const int from = top ? AT_FDCWD : parent.directory.get();
  const unsigned mode = top ? 0700 : permissions_below(parent.now.st_mode);
  const auto look = [&] {
    return Descriptor::take([&] {
      return top ? ::open(name.c_str(), O_PATH | O_CLOEXEC)
                 : ::openat(from, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    });
  };
  Place next;
  next.path = top ? name : parent.path + '/' + name;
  next.directory = look();
  if (!next.directory && errno == ENOENT && missing == Missing::is_made) {
    if (auto error = make_at(from, name, next.path, mode)) return *std::move(error);
    next.directory = look();
  }
  if (!next.directory && errno == ENOENT && (!top || has_parent(name))) return Place{};
  if (!next.directory || ::fstat(next.directory.get(), &next.now) != 0)
    return system_error("cannot look at", next.path, errno);
  if (auto error = judge(next.now, next.path, top, top || parent.open_to_all())) return *std::move(error);
  return next;
}

std::optional<Error> ElectionDirectory::judge_file_system(int directory) const {
  struct statfs system {};
  if (::fstatfs(directory, &system) != 0) return system_error("cannot look at the file system of", path_, errno);
  if (const auto why = unfit_file_system(static_cast<std::uint64_t>(system.f_type) & 0xFFFFFFFF))
    return Error{Fault::misconfigured, path_ + " " + *why};
  return std::nullopt;
}

Result<Descriptor> ElectionDirectory::unnamed_file() const {
  auto file = Descriptor::take([&] { return ::openat(get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
  if (file) return file;
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)
    return Error{Fault::misconfigured, path_ +
                                           " is on a file system without unnamed files (O_TMPFILE), by which a tenure "
                                           "appears whole or not at all; use ext4, xfs, btrfs or tmpfs"};
  return system_error("cannot make a file in", path_, errno);
}

unsigned ElectionDirectory::permissions() const {
  struct stat now {};
  return ::fstat(descriptor_.get(), &now) == 0 ? now.st_mode & 0777 : 0;
}

Result<Listing> ElectionDirectory::list() const {
  for (int attempt = 0; attempt < 4; ++attempt) {
    Listing listing;
    const auto whole = list_once(descriptor_.get(), path_, listing);
    if (!whole) return whole.error();
    if (!*whole) continue;
    std::sort(listing.tenures.begin(), listing.tenures.end());
    return listing;
  }
  return Error{Fault::misconfigured, path_ +
                                         " holds too many files to be listed at one moment; it is for the "
                                         "election alone; remove everything else from it"};
}

}  // namespace tenure::file
