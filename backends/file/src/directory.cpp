// SPDX-License-Identifier: Apache-2.0
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

#include "errors.hpp"

namespace tenure::file {
namespace {

constexpr std::size_t longest_name = 240;  // file systems take 255 bytes, and some that encrypt take fewer

/// Decimal without leading zeros, as we write it.
std::optional<std::uint64_t> token_of(std::string_view text) {
  return text.starts_with('0') ? std::nullopt : number<std::uint64_t>(text);
}

void note(std::string_view name, Listing& listing) {
  constexpr std::string_view step_down = "step_down.";
  if (const auto n = token_of(name)) listing.tenures.push_back(*n);
  if (!name.starts_with(step_down)) return;
  if (const auto token = token_of(name.substr(step_down.size()))) listing.step_downs.push_back({*token});
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
  // In a directory like /tmp, everybody can write, so nobody is trusted for that.
  return (mode & S_IWOTH) != 0 ? 0700 : (mode & 02775) | 0700;
}

}  // namespace

std::vector<std::string> encoded(std::string_view election) {
  std::vector<std::string> pieces(1);
  for (const char c : election) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || (c == '.' && !pieces.back().empty());
    if (pieces.back().size() + 3 > longest_name) {
      pieces.back() += '~';
      pieces.emplace_back();
    }
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
  static constexpr std::pair<std::uint64_t, const char*> network[] = {
      {0x6969, "NFS"},
      {0x517B, "SMB"},
      {0xFF534D42, "CIFS"},
      {0xFE534D42, "SMB"},
      {0x01021997, "9p"},
      {0x5346414F, "AFS"},
      {0x6B414653, "AFS"},
      {0x00C36400, "Ceph"},
      {0x0BD00BD0, "Lustre"},
      {0x01161970, "GFS2"},
      {0x7461636F, "OCFS2"},
      {0x47504653, "GPFS"},
      {0x73757245, "Coda"},
      {0x564C, "NCP"},
      {0x786F4256, "vboxsf"},
      {0x19830326, "BeeGFS"},
      {0x65735546, "FUSE (virtiofs, sshfs, GlusterFS, ...)"}};
  if (std::find(std::begin(local), std::end(local), type) != std::end(local)) return std::nullopt;
  const std::string remedy =
      "; use a directory on a local disk (ext4, xfs, btrfs) or on a tmpfs such as /run. For processes of several hosts "
      "use a store with a server";
  for (const auto& [known, name] : network)
    if (type == known)
      return std::string("is on ") + name + ", where the kernel cannot tell that a process of another host died" +
             remedy;
  char hex[24];
  std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(type));
  return std::string("is on a file system of type ") + hex + ", not known to be local" + remedy;
}

ElectionDirectory::ElectionDirectory(const std::filesystem::path& directory, std::string_view election) {
  path_ = std::filesystem::absolute(directory).lexically_normal().string();
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  steps_.push_back(path_);
  for (const auto& piece : encoded(election)) {
    path_ += '/' + piece;
    steps_.push_back(path_);
  }
}

Result<bool> ElectionDirectory::stands() const {
  struct stat now {};
  if (::stat(path_.c_str(), &now) == 0) return descriptor_.ours() && FileId{now.st_dev, now.st_ino} == descriptor_.id();
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return system_error("cannot look at", path_, errno);
}

std::optional<Error> ElectionDirectory::enter() {
  const auto stands_now = stands();
  if (!stands_now) return stands_now.error();
  if (*stands_now) return std::nullopt;
  descriptor_.close();
  const auto open_to_all = make();
  if (!open_to_all) return open_to_all.error();
  return open(*open_to_all);
}

/// If it is `open_to_all`, everybody could have put this here.
std::optional<Error> ElectionDirectory::judge(const struct stat& now, const std::string& path, bool top,
                                              bool open_to_all) {
  if (!S_ISDIR(now.st_mode))
    return Error{Fault::misconfigured, path + " is not a directory; name one, or remove that file"};
  const auto us = ::geteuid();
  if (open_to_all && now.st_uid != 0 && now.st_uid != us)
    return Error{Fault::forbidden, path + " belongs to user " + std::to_string(now.st_uid) +
                                       ", who could forge a leader; it must belong to root or to user " +
                                       std::to_string(us) + ". To share it: chown root:GROUP, chmod 2770"};
  if ((now.st_mode & S_IWOTH) != 0 && !(top && (now.st_mode & S_ISVTX) != 0))
    return Error{Fault::forbidden,
                 path + " can be written by everybody, who could then forge a leader; chmod o-w " + path};
  return std::nullopt;
}

Result<bool> ElectionDirectory::make() const {
  unsigned mode = 0700;
  bool open_to_all = true, top_is_open_to_all = false;
  for (const auto& step : steps_) {
    const bool top = &step == &steps_.front();
    struct stat now {};
    // A link below the directory that the user named was not made by us.
    if (!top && ::lstat(step.c_str(), &now) == 0 && S_ISLNK(now.st_mode))
      return Error{
          Fault::misconfigured,
          step + " is a symbolic link; remove it, or name the directory that holds the elections by its own path"};
    if (::stat(step.c_str(), &now) != 0) {
      if (errno != ENOENT) return system_error("cannot look at", step, errno);
      // We use chmod, because the umask would take away the group's right to share it.
      if (::mkdir(step.c_str(), 0700) == 0 ? ::chmod(step.c_str(), mode) != 0 : errno != EEXIST)
        return system_error("cannot make the directory", step, errno);
      if (::stat(step.c_str(), &now) != 0) return system_error("cannot look at", step, errno);
    }
    if (auto error = judge(now, step, top, open_to_all)) return *std::move(error);
    open_to_all = (now.st_mode & S_IWOTH) != 0;
    if (top) top_is_open_to_all = open_to_all;
    mode = permissions_below(now.st_mode);
  }
  return top_is_open_to_all;
}

std::optional<Error> ElectionDirectory::open(bool open_to_all) {
  auto opened =
      Descriptor::take([this] { return ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
  if (!opened) return system_error("cannot open the directory", path_, errno);
  if (auto error = check(opened, open_to_all)) return error;
  descriptor_ = std::move(opened);
  return std::nullopt;
}

std::optional<Error> ElectionDirectory::check(const Descriptor& opened, bool open_to_all) {
  struct statfs system {};
  if (::fstatfs(opened.get(), &system) != 0) return system_error("cannot look at the file system of", path_, errno);
  if (const auto why = unfit_file_system(static_cast<std::uint64_t>(system.f_type) & 0xFFFFFFFF))
    return Error{Fault::misconfigured, path_ + " " + *why};
  struct stat now {};
  if (::fstat(opened.get(), &now) != 0) return system_error("cannot look at", path_, errno);
  permissions_ = now.st_mode & 0777;
  // make() judged a path, and something else may have been put there since. This judges what we opened.
  if (auto error = judge(now, path_, false, open_to_all)) return error;

  // A process that may not write, or finds the disk full, can still observe.
  const auto probe =
      Descriptor::take([&] { return ::openat(opened.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
  if (!probe && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
    return Error{Fault::misconfigured, path_ +
                                           " is on a file system without unnamed files (O_TMPFILE), by which a "
                                           "tenure appears whole or not at all; use ext4, xfs, btrfs or tmpfs"};
  return std::nullopt;
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
