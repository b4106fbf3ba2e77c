// SPDX-License-Identifier: Apache-2.0
// Goal: while a witness keeps a copy of a claim's lock, nobody takes the claimer for dead.
// Method: the backend goes without a release, as with a process that is killed; the copy is closed later.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include <tenure/file.hpp>

#include "scratch.hpp"
#include "within.hpp"

namespace {

using namespace tenure;
using test::within;

/// The descriptor that comes by the socket; -1 if none is there.
int received(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message)) return -1;
  int copy = -1;
  std::memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof copy);
  return copy;
}

struct Claimed {
  explicit Claimed(const test::Scratch& directory) : url("file://" + directory.path().string()) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    claimer =
        file::open_url({.url = url + "?witness=" + std::to_string(ends[0]), .election = "e", .log = no_log}).backend;
    next = file::open_url({.url = url, .election = "e", .log = no_log}).backend;
    for (const auto& backend : {claimer, next}) EXPECT_FALSE(backend->accepts(Timing::of(std::chrono::minutes(10))));
    EXPECT_TRUE(std::holds_alternative<Granted>(claimer->acquire(within(std::chrono::minutes(1)))));
  }
  ~Claimed() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  bool next_leads() const { return std::holds_alternative<Granted>(next->acquire(within(std::chrono::minutes(1)))); }

  std::string url;
  int ends[2];
  std::shared_ptr<Backend> claimer, next;
};

TEST(FileWitness, KeepsTheLeaseOfTheDead) {
  const test::Scratch directory;
  Claimed claimed(directory);
  const int copy = received(claimed.ends[1]);
  ASSERT_GE(copy, 0);
  claimed.claimer.reset();
  EXPECT_FALSE(claimed.next_leads()) << "the witness still has the copy";
  ::close(copy);
  EXPECT_TRUE(claimed.next_leads());
}

TEST(FileWitness, DoesNotDelayAHandOver) {
  const test::Scratch directory;
  Claimed claimed(directory);
  const int copy = received(claimed.ends[1]);
  EXPECT_FALSE(claimed.claimer->release(within(std::chrono::minutes(1))));
  EXPECT_TRUE(claimed.next_leads());
  ::close(copy);
}

TEST(FileWitness, ThatHasGoneIsAnErrorOfTheClaim) {
  const test::Scratch directory;
  Claimed claimed(directory);
  EXPECT_FALSE(claimed.claimer->release(within(std::chrono::minutes(1))));
  ::shutdown(claimed.ends[1], SHUT_RDWR);
  EXPECT_TRUE(std::holds_alternative<Unknown>(claimed.claimer->acquire(within(std::chrono::minutes(1)))));
}

TEST(FileWitness, IsANumber) {
  const test::Scratch directory;
  for (const char* wrong : {"", "x", "-1"})
    EXPECT_THROW(file::open_url({.url = "file://" + directory.path().string() + "?witness=" + wrong, .election = "e"}),
                 std::invalid_argument)
        << wrong;
}

}  // namespace
