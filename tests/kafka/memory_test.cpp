// SPDX-License-Identifier: Apache-2.0
// Goal: the threads of this room outlive a want of memory. Method: what runs on them throws std::bad_alloc.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>

#include "eventually.hpp"
#include "mailbox.hpp"
#include "reading_thread.hpp"

namespace tenure::kafka {
namespace {

/// One that no memory is found for a copy of.
struct Fact {
  explicit Fact(bool is_closing) : closing(is_closing) {}
  Fact(const Fact&) { throw std::bad_alloc(); }
  Fact(Fact&&) = default;
  Fact& operator=(const Fact&) = delete;
  Fact& operator=(Fact&&) = default;
  ~Fact() = default;
  bool closing{};
};

TEST(KafkaMemory, ClosingTakesNone) {
  Options options;
  options.log = no_log;
  ClosableLog log(options);
  Mailbox<Fact, int> mailbox;
  mailbox.open();
  mailbox.close();
  bool closed = false;
  mailbox.serve({.handle = [&closed](const Fact& fact) { closed |= fact.closing; },
                 .take_events = [] {},
                 .alarm = [] { return Clock::Time::max(); },
                 .give_handle_up = [](const std::string&) {},
                 .elapsed = Fact(false),
                 .closing = Fact(true)},
                log);
  EXPECT_TRUE(closed);
}

TEST(KafkaMemory, ALackOfMemoryIsReportedOnceMemorySuffices) {
  Options options;
  options.log = no_log;
  ClosableLog log(options);
  Mailbox<Fact, int> mailbox;
  mailbox.open();
  int handled = 0, told = 0;
  mailbox.serve({.handle =
                     [&](const Fact&) {
                       if (++handled == 1) throw std::bad_alloc();
                       mailbox.close();
                     },
                 .take_events = [] {},
                 .alarm = [] { return Clock::Time::max(); },
                 .give_handle_up =
                     [&](const std::string&) {
                       if (++told == 1) throw std::bad_alloc();
                     },
                 .elapsed = Fact(false),
                 .closing = Fact(true)},
                log);
  EXPECT_EQ(told, 2);
}

TEST(KafkaMemory, AReadWhoseAnswerFindsNoneIsMadeAgain) {
  std::atomic<int> tries{0};
  const auto reading = std::make_shared<ReadingThread>();
  reading->start("test-read", reading);
  reading->add([&tries] {
    if (++tries < 3) throw std::bad_alloc();
  });
  EXPECT_TRUE(tenure::test::eventually([&tries] { return tries == 3; }));
  reading->stop();
}

}  // namespace
}  // namespace tenure::kafka
