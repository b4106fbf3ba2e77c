// SPDX-License-Identifier: Apache-2.0
// The list of our descriptors, which a fork finds whole and its child closes; and what a failed system call means.
#include "descriptor.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace tenure::file {
namespace {

struct Entry {
  int fd;
  FileId id;
};

/// This lock is held while descriptors come and go, and across every fork, so that a child sees a whole list.
struct Ledger {
  std::mutex mutex;
  std::vector<Entry> open;
  std::atomic<unsigned> life{0};
};

bool is(int fd, FileId id) noexcept {
  struct stat now {};
  return ::fstat(fd, &now) == 0 && FileId{now.st_dev, now.st_ino} == id;
}

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

Ledger& ledger() {
  // It is never destroyed, because threads of the program may still fork while statics are destroyed.
  static Ledger& made = []() -> Ledger& {
    auto& fresh = *new Ledger;
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return fresh;
  }();
  return made;
}

void before_fork() { ledger().mutex.lock(); }
void after_fork_in_parent() { ledger().mutex.unlock(); }
void after_fork_in_child() {
  for (const auto& [fd, id] : ledger().open)
    if (is(fd, id)) ::close(fd);
  ledger().open.clear();
  ledger().life.fetch_add(1);
  ledger().mutex.unlock();
}

}  // namespace

unsigned life() noexcept { return ledger().life.load(std::memory_order_relaxed); }

std::unique_lock<std::mutex> hold_off_forks() { return std::unique_lock(ledger().mutex); }

Descriptor Descriptor::take(const std::function<int()>& open) {
  Descriptor made;
  auto& all = ledger();
  const std::lock_guard lock(all.mutex);
  all.open.reserve(all.open.size() + 1);
  made.life_ = life();
  made.fd_ = open();
  if (made.fd_ < 0) return made;
  struct stat now {};
  ::fstat(made.fd_, &now);
  made.id_ = {now.st_dev, now.st_ino};
  all.open.push_back({made.fd_, made.id_});
  return made;
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), life_(other.life_), id_(other.id_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  life_ = other.life_;
  id_ = other.id_;
  return *this;
}

bool Descriptor::ours() const noexcept { return *this && is(get(), id_); }

void Descriptor::close() noexcept {
  const int fd = get();
  fd_ = -1;
  if (fd < 0) return;
  const int kept = errno;
  const std::lock_guard lock(ledger().mutex);
  std::erase_if(ledger().open, [fd](const Entry& entry) { return entry.fd == fd; });
  if (is(fd, id_)) ::close(fd);
  errno = kept;
}

Error system_error(const std::string& doing, const std::string& path, int error_number) {
  auto fault = Fault::unreachable;
  std::string remedy;
  switch (error_number) {
    case EACCES:
    case EPERM:
      fault = Fault::forbidden;
      remedy = "; a candidate needs to read and write the directory, an observer to read it";
      break;
    case EROFS:
      fault = Fault::forbidden;
      remedy = "; candidates need a directory that can be written";
      break;
    case ENOSPC:
    case EDQUOT: remedy = "; free some space: until then no new leader can be elected"; break;
    case EMFILE:
    case ENFILE: remedy = "; close some descriptors or raise the limit (ulimit -n)"; break;
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      fault = Fault::misconfigured;
      remedy = "; name a directory whose parent exists";
      break;
    default: break;
  }
  return {fault, doing + " " + path + ": " + std::generic_category().message(error_number) + remedy};
}

}  // namespace tenure::file
