// SPDX-License-Identifier: Apache-2.0
// What asking costs: is_leader() beside a bare reading of CLOCK_BOOTTIME, a mutex round a flag and a deadline, and a
// flag that nobody checks against time. With one and two threads, the variants in turn in each round, so that their
// ratio is of one run. usage: leadership_bench [rounds]
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>

#include <tenure/fake_leadership.hpp>

#include "table.hpp"

namespace {

using namespace tenure;

constexpr long calls = 2'000'000;

template <class Ask>
double nanoseconds_per_call(unsigned threads, Ask ask) {
  std::atomic<unsigned> ready{0};
  std::atomic<long> yes{0};
  std::vector<double> took(threads);
  {
    std::vector<std::jthread> all;
    for (unsigned i = 0; i < threads; ++i)
      all.emplace_back([&, i] {
        ++ready;
        while (ready < threads) {
        }
        const auto start = boot_clock().now();
        long mine = 0;
        for (long n = 0; n < calls; ++n) mine += ask() ? 1 : 0;
        took[i] = static_cast<double>((boot_clock().now() - start).count()) / calls;
        yes += mine;
      });
  }
  if (yes != static_cast<long>(threads) * calls) std::abort();
  return bench::median(took);
}

struct Guarded {
  std::mutex mutex;
  bool leader{true};
  Clock::Time deadline{boot_clock().now() + std::chrono::hours(1)};
  bool is_leader() {
    const std::lock_guard lock(mutex);
    return leader && boot_clock().now() < deadline;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  FakeLeadership fake;
  fake.lead({1}, std::chrono::hours(1));
  const auto leadership = fake.leadership();
  Guarded guarded;
  std::atomic<bool> flag{true};

  const auto bare = [] {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec >= 0;
  };
  bench::print_header("ns per call");
  for (const unsigned threads : {1u, 2u}) {
    std::vector<double> clock, is_leader, token, mutex, unchecked, ratio;
    for (int round = 0; round < rounds; ++round) {
      clock.push_back(nanoseconds_per_call(threads, bare));
      is_leader.push_back(nanoseconds_per_call(threads, [&] { return leadership.is_leader(); }));
      token.push_back(nanoseconds_per_call(threads, [&] { return leadership.token().has_value(); }));
      mutex.push_back(nanoseconds_per_call(threads, [&] { return guarded.is_leader(); }));
      unchecked.push_back(nanoseconds_per_call(threads, [&] { return flag.load(std::memory_order_acquire); }));
      ratio.push_back(is_leader.back() / clock.back());
    }
    const auto name = [&](const char* what) { return std::string(what) + ", threads: " + std::to_string(threads); };
    bench::print_row(name("bare CLOCK_BOOTTIME"), clock);
    bench::print_row(name("is_leader()"), is_leader);
    bench::print_row(name("token()"), token);
    bench::print_row(name("mutex, flag and deadline"), mutex);
    bench::print_row(name("unchecked atomic flag"), unchecked);
    bench::print_row(name("ratio is_leader() / bare clock"), ratio);
  }
}
