// SPDX-License-Identifier: Apache-2.0
// Elections among the processes of one host, in a directory. No server, no library.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/file_export.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>

namespace tenure::file {

/// A backend of the election of that name, kept in a directory of its own below `directory`.
///
/// When the leader's process dies, however it dies, the kernel tells the others: one of them leads a millisecond later.
/// When it is only stopped, its term runs out first. Every tenure is one small file, which its leader keeps open and
/// locked; nothing else is ever locked, so a process stopped anywhere holds up nobody.
///
/// Where: a local file system with unnamed files (ext4, xfs, btrfs, f2fs, tmpfs, overlayfs from Linux 6.1
/// on). Network file systems and FUSE are refused: the kernel cannot tell there that another host's process
/// died. Containers may share an election through a bind-mounted directory. An overlayfs and the directory
/// below it are told apart, and so are hosts, boots and time namespaces that meet on one disk: among those a
/// dead leader's term runs out before the next one leads. /proc must be mounted.
///
/// Who: whoever may write the election's directory can lead, and could forge a leader. `directory` is made
/// for its owner alone if it is missing (its parent must exist); the election's directory takes its
/// permissions. It must belong to root or to our effective user and not be writable for all, except
/// `directory` itself if it is sticky like /tmp. To share with other users: owned by root, their group, mode
/// 2770. Reading is enough to observe.
///
/// By hand: deleting, replacing or moving the files of a running election can give two leaders for up to one
/// renewal; then the old one finds out. So does a program that closes descriptors it did not open. To ask
/// a leader to step down use Backend::request_step_down(). While nobody runs, the directory may be deleted; tokens then
/// rise on from the wall clock.
///
/// Limits: a full disk keeps anybody new from leading until there is space; a leader goes on. A forked child
/// has no part in its parent's elections; it may open its own. One inotify instance per process announces
/// changes; where the user has none left, followers look every `poll_interval` instead.
///
/// Throws std::invalid_argument with the reason and the remedy for a directory that is refused,
/// std::runtime_error if the system gives us no descriptor or space for it.
TENURE_FILE_EXPORT std::shared_ptr<Backend> open(const std::filesystem::path& directory, const std::string& election,
                                                 Candidate candidate = {}, Log log = {});

/// The store below it, to build upon. Throws as open() does.
TENURE_FILE_EXPORT std::shared_ptr<ConditionalStore> store(const std::filesystem::path& directory,
                                                           const std::string& election);

/// A backend by URL: "file:///directory". No host, no user, no properties.
/// Throws std::invalid_argument for another URL, and as open() does.
TENURE_FILE_EXPORT Opened open_url(const Opening& opening);

/// Terms of 3, 10 and 30 s: lock_table_presets().
TENURE_FILE_EXPORT Presets presets();

inline constexpr Clock::Duration poll_interval = std::chrono::milliseconds(100);

}  // namespace tenure::file
