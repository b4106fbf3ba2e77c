// SPDX-License-Identifier: Apache-2.0
// What asking costs where a process leads thousands of elections: by a handle that was kept, and by the name, beside a
// bare reading of CLOCK_BOOTTIME. One election again and again, and 1 024 of them in turn. The variants follow one
// another in each round, so that their ratios are of one run. usage: elections_bench [elections] [rounds]
#include <cstdlib>
#include <ctime>
#include <thread>

#include <tenure/elections.hpp>
#include <tenure/memory.hpp>

#include "table.hpp"

namespace {

using namespace tenure;
using namespace std::chrono_literals;

constexpr std::size_t calls = 200'000, in_turn = 1024;

double cpu_ns() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return static_cast<double>(ts.tv_sec) * 1e9 + static_cast<double>(ts.tv_nsec);
}

/// ns a call, of this thread's own processor time.
template <class Ask>
double measured(Ask ask) {
  std::size_t yes = 0;
  const auto start = cpu_ns();
  for (std::size_t n = 0; n < calls; ++n) yes += ask(n % in_turn) ? 1 : 0;
  const auto took = cpu_ns() - start;
  if (yes != calls) std::abort();
  return took / calls;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 10'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  const memory::Hub hub;
  Elections elections(hub.group("bench"), {"a", ""},
                      {.term = 60s, .renew = 10s, .retry = 1s, .margin = 1s, .call = 2s, .drain = 5s});
  std::vector<std::string> names;
  for (int i = 0; i < std::max(count, static_cast<int>(in_turn)); ++i) names.push_back("job-" + std::to_string(i));
  elections.join(names);
  elections.start();
  while (elections.led().size() < names.size()) std::this_thread::sleep_for(10ms);
  std::vector<Leadership> handles;
  for (std::size_t i = 0; i < in_turn; ++i) handles.push_back(elections.leadership(names[i * names.size() / in_turn]));
  std::vector<std::string> asked;
  for (std::size_t i = 0; i < in_turn; ++i) asked.push_back(names[i * names.size() / in_turn]);

  std::vector<double> clock, handle, name, all_handles, all_names, handle_ratio, name_ratio, name_more;
  for (int round = 0; round < rounds; ++round) {
    clock.push_back(measured([](std::size_t) {
      timespec ts{};
      clock_gettime(CLOCK_BOOTTIME, &ts);
      return ts.tv_sec >= 0;
    }));
    handle.push_back(measured([&](std::size_t) { return handles[0].is_leader(); }));
    name.push_back(measured([&](std::size_t) { return elections.is_leader(asked[0]); }));
    all_handles.push_back(measured([&](std::size_t n) { return handles[n].is_leader(); }));
    all_names.push_back(measured([&](std::size_t n) { return elections.is_leader(asked[n]); }));
    handle_ratio.push_back(handle.back() / clock.back());
    name_ratio.push_back(name.back() / clock.back());
    name_more.push_back(name.back() - clock.back());
  }
  bench::print_header(("ns per call, elections: " + std::to_string(names.size())).c_str());
  bench::print_row("bare CLOCK_BOOTTIME", clock);
  bench::print_row("one handle", handle);
  bench::print_row("one name", name);
  bench::print_row("1024 handles in turn", all_handles);
  bench::print_row("1024 names in turn", all_names);
  bench::print_row("ratio one handle / bare clock", handle_ratio);
  bench::print_row("ratio one name / bare clock", name_ratio);
  bench::print_row("one name, more than the bare clock", name_more);
}
