// SPDX-License-Identifier: Apache-2.0
// Elections among the processes of one host, in a directory. They need no server and no library.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/election_list.hpp>
#include <tenure/file_export.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>

namespace tenure::file {

/// Returns a backend of the election of that name, for one LeaderManager or one Observer. The election has a directory
/// of its own below `directory`.
///
/// When the leader's process dies, in whatever way, the kernel tells the others, and one of them leads a few
/// milliseconds later. When the leader is only stopped, its term runs out first. Each tenure is one small file, which
/// its leader keeps open and locked. Nothing else is ever locked, so a process that is stopped anywhere blocks nobody.
///
/// Where: it needs a local file system with unnamed files: ext4, xfs, btrfs, f2fs, tmpfs, or overlayfs from Linux 6.1
/// on. Network file systems and FUSE are refused, because the kernel cannot tell there that a process of another host
/// died. Containers may share an election through a bind-mounted directory. A lock shows a death only within one
/// boot and one time namespace, and on one side of an overlayfs. Elsewhere, as where two hosts use one disk in turn, a
/// dead leader's term runs out before the next one leads. /proc must be mounted.
///
/// Who: everybody who may write to the election's directory can lead, or forge a leader. To observe it is enough to
/// read, and who may only read holds nobody up. While `directory` is missing, nobody leads. The first claim makes it,
/// for its owner alone; its parent must exist. The election's directory takes the permissions of `directory`. Both must
/// belong to root or to our effective user, and must not be writable for all. `directory` itself may be, if it is
/// sticky like /tmp. To share an election with other users, let root own `directory`, give it their group, and set its
/// mode to 2770. Nothing that they put there is followed as a link, or gets other permissions.
///
/// By hand: do not delete, replace or move the files of a running election. Two leaders are then possible until the
/// old one's next renewal finds out. A program that closes descriptors of others does the same damage.
/// While nobody runs, the directory may be deleted; tokens then go on from the wall clock. To ask a leader to step
/// down, use Backend::request_step_down().
///
/// Limits: while the disk is full, nobody new can lead; a leader goes on. But its renewals may fail too where a change
/// needs new space, as on btrfs, zfs, bcachefs, f2fs and nilfs2. A forked child has no part in its parent's elections,
/// and it may open its own. One inotify instance per process announces changes. If the user has none left, followers
/// look every `poll_interval` instead.
///
/// Throws std::invalid_argument, with the reason and the remedy, for a directory that is refused, and
/// std::runtime_error if the system has no descriptor or no space for it. The verbs return later faults as an Error.
TENURE_FILE_EXPORT std::shared_ptr<Backend> open(const std::filesystem::path& directory, const std::string& election,
                                                 Candidate candidate = {}, Log log = {});

/// Returns the store on which such a backend is built, for backends of your own. Throws as open() does.
TENURE_FILE_EXPORT std::shared_ptr<ConditionalStore> store(const std::filesystem::path& directory,
                                                           const std::string& election);

/// Opens a backend by URL: "file:///directory". It takes no host and no user, and one property. "witness" is the number
/// of a Unix socket, by which each claim hands a copy of its lock to another process. While that process keeps the
/// copy, nobody learns of our death, and our lease runs to its end: it can first end what we left behind. REQUIRES:
/// the socket outlives the backend. Throws std::invalid_argument for another URL, and otherwise as open() does.
TENURE_FILE_EXPORT Opened open_url(const Opening& opening);

/// The elections below the directory, in the order of their names, for tenure::list_elections(). It makes no directory.
/// `election` and `candidate` of the opening do not count. Throws as open_url().
TENURE_FILE_EXPORT ElectionList list_url(const Opening& opening);

/// The terms are 3, 10 and 30 s: see lock_table_presets().
TENURE_FILE_EXPORT Presets presets();

/// A follower without inotify looks this often.
inline constexpr Clock::Duration poll_interval = std::chrono::milliseconds(100);

}  // namespace tenure::file
