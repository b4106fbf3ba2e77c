// SPDX-License-Identifier: Apache-2.0
// What asking costs: is_leader() and token() beside a bare reading of CLOCK_BOOTTIME. With one and two threads, the
// variants in turn in each round, so that their ratio is of one run.
//
// leadership_bench [--rounds 21]
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <thread>

#include <tenure/fake_leadership.hpp>

#include "program_options.hpp"
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

}  // namespace

int main(int argc, char** argv) try {
  const auto rounds = test::Options(argc, argv, {{"--rounds", "21"}}).number("--rounds");
  FakeLeadership fake;
  fake.lead({1}, std::chrono::hours(1));
  const auto leadership = fake.leadership();
  const auto bare = [] {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec >= 0;
  };
  bench::print_header("ns per call");
  for (const unsigned threads : {1u, 2u}) {
    std::vector<double> clock, is_leader, token, ratio;
    for (std::size_t round = 0; round < rounds; ++round) {
      clock.push_back(nanoseconds_per_call(threads, bare));
      is_leader.push_back(nanoseconds_per_call(threads, [&] { return leadership.is_leader(); }));
      token.push_back(nanoseconds_per_call(threads, [&] { return leadership.token().has_value(); }));
      ratio.push_back(is_leader.back() / clock.back());
    }
    const auto name = [&](const char* what) { return std::string(what) + ", threads: " + std::to_string(threads); };
    bench::print_row(name("bare CLOCK_BOOTTIME"), clock);
    bench::print_row(name("is_leader()"), is_leader);
    bench::print_row(name("token()"), token);
    bench::print_row(name("ratio is_leader() / bare clock"), ratio);
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "leadership_bench: %s\n", e.what());
  return 1;
}
