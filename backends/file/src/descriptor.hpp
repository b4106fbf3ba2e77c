// SPDX-License-Identifier: Apache-2.0
// Descriptors that a forked child does not inherit. A lock lives as long as any copy of its descriptor: a
// child with one would hold the lead for its dead parent. And what a failed system call means for elections.
#pragma once
#include <sys/types.h>

#include <functional>
#include <mutex>
#include <string>

#include <tenure/error.hpp>

namespace tenure::file {

/// Returns how many forks lie between the first process and this one. Nothing may be used that was made before a fork.
unsigned life() noexcept;

/// No fork happens while it is held. REQUIRES: no Descriptor is taken or closed meanwhile.
std::unique_lock<std::mutex> hold_off_forks();

/// Device and inode tell whether two things are one file.
struct FileId {
  dev_t device{};
  ino_t inode{};
  friend bool operator==(const FileId&, const FileId&) = default;
};

class Descriptor {
 public:
  Descriptor() noexcept = default;

  /// Takes what `open` returns, and keeps its errno. No fork happens between opening and taking.
  static Descriptor take(const std::function<int()>& open);

  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const noexcept { return fd_ >= 0 && life_ == life() ? fd_ : -1; }
  explicit operator bool() const noexcept { return get() >= 0; }
  FileId id() const noexcept { return id_; }

  /// Whether the number still means the file that we opened. A program that becomes a daemon closes what it did not
  /// open.
  bool ours() const noexcept;

  void close() noexcept;  ///< Leaves a number alone that is another file's by now.

 private:
  int fd_{-1};
  unsigned life_{};
  FileId id_;
};

/// Explains a failed system call to those who run the program: what we did, where, why it failed, and what would help.
Error system_error(const std::string& doing, const std::string& path, int error_number);

}  // namespace tenure::file
