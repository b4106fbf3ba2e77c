// SPDX-License-Identifier: Apache-2.0
// The functions of the ConditionalStore: looks, claims by link(2), and writes in place.
#include "store.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

#include <tenure/file.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/log.hpp>

namespace tenure::file {
namespace {

/// inotify reports the closing of a file a moment before its lock is free.
constexpr Clock::Duration look_again = std::chrono::milliseconds(1);
constexpr int looks_after_close = 5;

std::string boot_id() {
  const std::string path = "/proc/sys/kernel/random/boot_id";
  std::string id;
  std::ifstream(path) >> id;
  if (id.size() != boot_id_bytes)
    throw std::invalid_argument("cannot read " + path + ", which identifies this boot of the machine; mount /proc");
  return id;
}

std::uint64_t time_namespace() {
  struct stat now {};
  return ::stat("/proc/self/ns/time", &now) == 0 ? now.st_ino : 0;  // 0: a kernel that has only one
}

bool lock(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/// It only asks. To take the lock, even for a moment, would make its dead holder look alive to others. It asks whether
/// we could read, because whoever may only read can hold a lock for reading: that one is no holder's.
Result<bool> lock_is_free(int fd, const std::string& path) {
  struct flock whole {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_GETLK, &whole) != 0) return system_error("cannot ask for the lock of", path, errno);
  return whole.l_type == F_UNLCK;
}

/// Gives an unnamed file its name. It must not exist.
bool publish_as(int fd, int directory, const std::string& name) {
  const auto unnamed = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, unnamed.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool write_all(int fd, const void* bytes, std::size_t size, off_t at) {
  const auto wrote = ::pwrite(fd, bytes, size, at);
  if (wrote >= 0 && static_cast<std::size_t>(wrote) != size) errno = ENOSPC;
  return wrote == static_cast<ssize_t>(size);
}

/// Hands a copy of the descriptor to whoever reads at the other end of the socket.
bool hand_copy(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

Clock::Time lease_end(const Record& record) { return Clock::Time(record.asked) + record.term; }

}  // namespace

Store::Store(const std::filesystem::path& directory, std::string election, std::function<void(Step)> at, int witness)
    : election_(std::move(election)),
      at_(std::move(at)),
      witness_(witness),
      boot_id_(boot_id()),
      time_namespace_(time_namespace()),
      directory_(directory, election_) {
  check_election(election_);
  const auto entered = directory_.enter(Missing::stays);
  if (entered) return;
  const auto& error = entered.error();
  if (error.fault == Fault::unreachable) throw std::runtime_error(error.message);
  throw std::invalid_argument(error.message);
}

std::optional<Error> Store::unusable(const Limit& limit) const {
  if (life_ != life()) return forked_child(directory_.path());
  if (limit.passed())
    return Error{Fault::timed_out, "the call's limit had passed before it could look into " + directory_.path()};
  return std::nullopt;
}

Result<Read> Store::read(const Limit& limit) {
  if (auto error = unusable(limit)) return *error;
  auto found = look(limit);
  if (!found) return std::move(found).error();
  return remember(std::move(found->read));
}

Read Store::remember(Read answer) {
  known_released_.reset();
  if (answer.record && answer.record->released) known_released_ = answer.record->token;
  return answer;
}

Result<Store::Look> Store::look(const Limit& limit, Missing missing) {
  const auto entered = directory_.enter(missing);
  if (!entered) return entered.error();
  // A claim removes what stood before, so we look at what stands now.
  for (int attempt = 0; attempt < 64; ++attempt) {
    auto listed = *entered ? directory_.list() : Listing{};
    if (!listed) return std::move(listed).error();
    Look found{*std::move(listed), {}};
    found.read.now_ms = limit.clock.unix_ms();
    found.read.absence_certain = true;
    const auto newest = found.listing.newest();
    if (newest == 0) return found;
    if (newest == std::numeric_limits<std::uint64_t>::max())
      return Error{Fault::corrupt, directory_.path_of(std::to_string(newest)) +
                                       " leaves no number for the next tenure, and no leader made it; remove it"};
    const auto there = look_into(newest, found.read);
    if (!there) return there.error();
    if (!*there) continue;
    reached(Step::looked);
    // It was the newest while we read it only if it is the newest still.
    const auto again = directory_.list();
    if (!again) return again.error();
    if (again->newest() != newest) continue;
    add_step_down(found.listing, found.read);
    return found;
  }
  return Error{Fault::unreachable, "the files of " + directory_.path() + " change faster than they can be read"};
}

/// False if it is gone.
Result<bool> Store::look_into(std::uint64_t newest, Read& out) const {
  const auto name = std::to_string(newest);
  const auto file = Descriptor::take([&] {
    return ::openat(directory_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  });
  if (!file && errno == ENOENT) return false;
  if (!file && errno != ELOOP && errno != ENXIO) return system_error("cannot read", directory_.path_of(name), errno);

  std::array<char, sizeof(Image) + 1> bytes{};
  std::variant<Unreadable, OtherFormat, Decoded> decoded;
  std::string_view content;
  for (int attempt = 0; attempt < 4 && std::holds_alternative<Unreadable>(decoded); ++attempt) {  // a torn beat heals
    const auto got = file ? ::pread(file.get(), bytes.data(), bytes.size(), 0) : 0;
    if (got < 0 && errno != EISDIR && errno != ESPIPE)
      return system_error("cannot read", directory_.path_of(name), errno);
    content = {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
    decoded = decode(content);
  }
  if (const auto* other = std::get_if<OtherFormat>(&decoded))
    return other_format(directory_.path_of(name), std::to_string(other->version), format_version);
  if (std::holds_alternative<Unreadable>(decoded)) {
    out.unreadable = true;
    out.record.emplace();
    out.record->token = {newest};
    out.record->beat = fnv1a(content);  // another one whenever its holder, if it has one, renews
    return true;
  }
  return judge(std::get<Decoded>(std::move(decoded)), file, directory_.path_of(name), out);
}

Result<bool> Store::judge(Decoded decoded, const Descriptor& file, const std::string& path, Read& out) const {
  if (decoded.election != election_)
    return Error{Fault::misconfigured, path + " belongs to the election \"" + printable(decoded.election) +
                                           "\", not to \"" + printable(election_) + "\"; give each its own directory"};
  const auto free = lock_is_free(file.get(), path);
  if (!free) return free.error();
  const auto& [boot, clock, written_in] = decoded.origin;
  // A copy in its place has no lock. It shows nothing about the holder, but that there was one.
  const bool original = written_in.inode == file.id().inode;
  const bool dead = boot == boot_id_ && written_in == file.id() && *free;
  out.record = std::move(decoded.record);
  out.record->released = original && (out.record->released || dead);
  out.same_clock = original && boot == boot_id_ && clock == time_namespace_;
  return true;
}

void Store::add_step_down(const Listing& listing, Read& out) const {
  const auto& all = listing.step_downs;
  if (!out.record || std::find(all.begin(), all.end(), out.record->token) == all.end()) return;
  auto& request = out.step_down.emplace();
  request.token = out.record->token;
  const auto name = step_down_name(request.token);
  const auto file = Descriptor::take(
      [&] { return ::openat(directory_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); });
  std::array<char, 1024> bytes;
  const auto got = file ? ::pread(file.get(), bytes.data(), bytes.size(), 0) : 0;
  const std::string_view text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const auto line = std::min(text.find('\n'), text.size());
  request.by = text.substr(0, line);
  request.why = text.substr(std::min(line + 1, text.size()));
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  if (auto error = unusable(limit)) return *error;
  auto record = next;
  record.term = std::chrono::ceil<std::chrono::milliseconds>(next.term);
  record.written_ms = limit.clock.unix_ms();
  auto result = !in_place(expected, record) ? publish(expected, record, limit)
                : record.released           ? release(record, limit)
                                            : renew(record, limit);
  if (result) result->found = remember(std::move(result->found));
  return result;
}

/// Whether this continues or ends the tenure that we hold. Every other write becomes a file of its own.
bool Store::in_place(const std::optional<Expected>& expected, const Record& next) const {
  if (!held_ || !expected) return false;
  const auto& now = held_->record;
  return matches(expected, now) && next.token == now.token && next.who == now.who && next.term == now.term;
}

Result<Swap> Store::renew(const Record& next, const Limit& limit) {
  auto& mine = *held_;
  if (limit.clock.now() >= mine.ends) return give_up(limit);
  const auto there = still_mine();
  if (!there) return there.error();
  if (!*there) return give_up(limit);
  reached(Step::checked);
  const auto beat = encode_beat(next, mine.origin);
  if (!write_all(mine.file.get(), &beat, sizeof beat, offsetof(Image, beat)))
    return system_error("cannot renew in", directory_.path(), errno);
  reached(Step::beaten);
  Listing listing;
  const auto newest = is_newest(mine, listing);
  if (!newest) return newest.error();
  if (!*newest) return give_up(limit);
  reached(Step::relisted);
  // It is judged by the lease as it was. Somebody who saw that lease end may have read n before we wrote, and may have
  // linked n+1 just now.
  if (limit.clock.now() >= mine.ends) return give_up(limit);
  mine.record = next;
  mine.ends = lease_end(next);
  return applied(next, listing, limit);
}

Result<Swap> Store::release(const Record& next, const Limit& limit) {
  const auto there = still_mine();
  if (!there) return there.error();
  if (!*there) return give_up(limit);
  const auto word = encode_release(next.beat);
  if (!write_all(held_->file.get(), &word, sizeof word, offsetof(Image, released)))
    return system_error("cannot release in", directory_.path(), errno);
  Listing listing;
  const auto newest = is_newest(*held_, listing);
  if (!newest) return newest.error();
  if (!*newest) return give_up(limit);
  held_.reset();
  return applied(next, listing, limit);
}

Result<Swap> Store::not_applied(const Limit& limit) {
  auto found = look(limit);
  if (!found) return std::move(found).error();
  return Swap{false, std::move(found->read)};
}

/// This tenure is over, for ever, whatever its file says. Where that cannot be looked at, this alone is told.
Result<Swap> Store::give_up(const Limit& limit) {
  lost_ = held_->record.token;
  auto ended = std::move(held_->record);
  held_.reset();
  auto refused = not_applied(limit);
  if (refused) return refused;
  ended.released = true;
  return Swap{false, {.record = std::move(ended), .now_ms = limit.clock.unix_ms(), .absence_certain = true}};
}

/// Whether descriptor, file and directory are what they were.
Result<bool> Store::still_mine() const {
  struct stat now {};
  const auto& file = held_->file;
  if (::fstat(file.get(), &now) != 0 || FileId{now.st_dev, now.st_ino} != file.id() || now.st_nlink == 0) return false;
  return directory_.stands();
}

/// It judges by number and inode, and fills the listing by which it judged.
Result<bool> Store::is_newest(const Held& mine, Listing& listing) const {
  auto listed = directory_.list();
  if (!listed) return std::move(listed).error();
  listing = *std::move(listed);
  return listing.newest() == mine.number && is_named(mine);
}

bool Store::is_named(const Held& mine) const {
  struct stat now {};
  const auto name = std::to_string(mine.number);
  return ::fstatat(directory_.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         FileId{now.st_dev, now.st_ino} == mine.file.id();
}

Result<Swap> Store::publish(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  auto before = look(limit, Missing::is_made);
  if (!before) return std::move(before).error();
  auto& [listing, found] = *before;
  if (!matches(expected, found.record) || (lost_ == next.token && !next.released)) return Swap{false, std::move(found)};
  reached(Step::compared);
  auto prepared = prepare(next);
  if (!prepared) return std::move(prepared).error();
  auto& mine = *prepared;
  mine.number = listing.newest() + 1;
  reached(Step::locked);
  if (!publish_as(mine.file.get(), directory_.get(), std::to_string(mine.number)))
    return errno == EEXIST ? not_applied(limit)
                           : Result<Swap>(system_error("cannot claim in", directory_.path(), errno));
  reached(Step::linked);
  return settle(std::move(mine), limit);
}

/// Others may see it from here on. An error frees the lock.
Result<Swap> Store::settle(Held mine, const Limit& limit) {
  Listing listing;
  const auto newest = is_newest(mine, listing);
  if (!newest || !*newest) {  // n+1 was free because it had come and gone: n+2 stands
    take_back(mine);
    return newest ? not_applied(limit) : Result<Swap>(newest.error());
  }
  reached(Step::listed);
  if (::fsync(mine.file.get()) != 0 || ::fsync(directory_.get()) != 0) {
    auto failed = system_error("cannot make a claim durable in", directory_.path(), errno);
    take_back(mine);
    return failed;
  }
  reached(Step::synced);
  remove_before(listing, mine);
  const auto record = mine.record;
  held_.reset();
  if (!record.released) held_ = std::move(mine);
  return applied(record, listing, limit);
}

/// While a disk is full or broken, no claim succeeds, and so none removes what the ones before it left.
void Store::take_back(const Held& mine) const {
  if (is_named(mine)) ::unlinkat(directory_.get(), std::to_string(mine.number).c_str(), 0);
}

Result<Store::Held> Store::prepare(const Record& next) const {
  auto file = directory_.unnamed_file();
  if (!file) return std::move(file).error();
  Held mine;
  mine.file = *std::move(file);
  mine.origin = {boot_id_, time_namespace_, mine.file.id()};
  mine.record = next;
  mine.ends = lease_end(next);
  const auto image = encode(next, election_, mine.origin);
  if (!image) return image.error();
  // Everybody who may list the directory may read who leads.
  if (::fchmod(mine.file.get(), 0600 | (directory_.permissions() & 0044)) != 0 ||
      !write_all(mine.file.get(), &*image, sizeof(Image), 0))
    return system_error("cannot write a claim in", directory_.path(), errno);
  if (!lock(mine.file.get())) return system_error("cannot lock a claim in", directory_.path(), errno);
  if (witness_ >= 0 && !hand_copy(witness_, mine.file.get()))
    return system_error("cannot reach the witness of a claim in", directory_.path(), errno);
  return mine;
}

/// It removes in ascending order, so that a process that is killed in the midst of it leaves no gap.
void Store::remove_before(const Listing& listing, const Held& mine) const {
  for (const auto number : listing.tenures)
    if (number < mine.number) ::unlinkat(directory_.get(), std::to_string(number).c_str(), 0);
  for (const auto token : listing.step_downs)
    if (token != mine.record.token) ::unlinkat(directory_.get(), step_down_name(token).c_str(), 0);
}

Swap Store::applied(const Record& record, const Listing& listing, const Limit& limit) const {
  Swap swap;
  swap.applied = true;
  swap.found.record = record;
  swap.found.now_ms = limit.clock.unix_ms();
  swap.found.same_clock = swap.found.absence_certain = true;
  add_step_down(listing, swap.found);
  return swap;
}

/// It names no release, because its claim reads the newest file again in any case.
std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  if (unusable(limit)) {
    wait_out(limit);
    return std::nullopt;
  }
  const auto waker = limit.clock.make_waker();
  struct Listening {
    Subscription& subscription;
    ~Listening() { subscription.wake(nullptr); }
  } const listening{subscription_};
  int looks = 0;
  while (!limit.passed()) {
    subscription_.wake(waker.get());
    if (subscription_.took_close()) looks = looks_after_close;
    const auto now = look(limit);
    if (!now || differs(seen, now->read)) break;
    const auto state = directory_.get() < 0
                           ? Subscription::State::unavailable
                           : subscription_.watch(directory_.id(), directory_.get(), now->listing.newest());
    if (state == Subscription::State::renewed) continue;
    auto until = limit.by;
    if (state == Subscription::State::unavailable) until = std::min(until, limit.clock.now() + poll_interval);
    if (looks > 0) until = std::min(until, limit.clock.now() + look_again), --looks;
    wait(*waker, {limit.clock, until, limit.stop});
  }
  return std::nullopt;
}

/// Another tenure is news, and so is one that was given back since the last news. Renewals are none.
bool Store::differs(const std::optional<Version>& seen, const Read& now) const {
  if (!now.record || !seen) return now.record.has_value() != seen.has_value();
  return now.record->token != seen->token || (now.record->released && known_released_ != seen->token);
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
  if (auto error = unusable(limit)) return error;
  const auto found = look(limit);
  if (!found) return found.error();
  // A request for another tenure means nothing. If it were left, it would meet a tenure that gets this token later.
  const auto& standing = found->read.record;
  if (!standing || standing->token != request.token) return std::nullopt;
  const auto file = directory_.unnamed_file();
  if (!file) return file.error();
  const auto text = printable(request.by, max_candidate_bytes) + '\n' + printable(request.why);
  if (::fchmod(file->get(), 0600 | (directory_.permissions() & 0044)) != 0 ||
      !write_all(file->get(), text.data(), text.size(), 0))
    return system_error("cannot write a request in", directory_.path(), errno);
  if (!publish_as(file->get(), directory_.get(), step_down_name(request.token)) && errno != EEXIST)
    return system_error("cannot leave a request in", directory_.path(), errno);
  return std::nullopt;
}

}  // namespace tenure::file
