// SPDX-License-Identifier: Apache-2.0
// One candidate as a process of its own, for the multi-process tests and the benchmarks. It writes what it observes as
// lines of JSON, each by one write(2), so that no line is lost when it is killed. Times are nanoseconds of
// CLOCK_BOOTTIME. SIGTERM stops it, SIGUSR1 makes it resign.
//
// candidate --store URL  --election E --log FILE --name N
//           [--preset fast|balanced|steady | --term-ms N [--call-ms N] [--renew-ms N]] [--sample-us N]
//           [--note-ms N] [--work-ms N] [--elections N]
//
// event     fields               meaning
// start     pid name term margin the process is about to campaign
// elected   token                the hook was called
// ousting   token reason until   the work may run for so long, by remaining()
// ended     token                ousting() returns now (after --work-ms, the time that stopping takes)
// lead      token after until    a sample: is_leader() turned true, or the deadline moved, or --note-ms passed. It was
//                                true at some instant from t to `after`, and the deadline is not before `until`
// follow                         a sample: is_leader() turned false
// sees      token                a sample: the incumbent is another candidate, and not the one before
// error     fault message
// quit                           stop() has returned
//
// With --elections it takes part in so many elections, "0", "1" and so on, of group E. If that is not exclusive, all
// tokens are 0. Then each of these events but start, error and quit has the `election`, `elected` may be a sample of
// the new tenure too (`after`, `until`), and there is
//
// holds     after until          a sample of all: each one that was led at its last sample is led still, see `lead`
#include <csignal>
#include <cstdio>
#include <thread>

#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

#include "many.hpp"

namespace {

using namespace tenure;
using namespace tenure::test;

/// Looks at is_leader() as a user would, and notes when what it says changes.
void sample(const Leadership& leadership, Pace pace, const Journal& journal, std::stop_token stop) {
  constexpr Clock::Duration moved = std::chrono::milliseconds(1);
  auto& clock = boot_clock();
  Token seen, incumbent;  // 0: none
  Clock::Time until{}, noted{};
  while (!stop.stop_requested()) {
    const auto before = clock.now();
    const auto token = leadership.token();
    const auto left = leadership.remaining();
    const auto after = clock.now();
    if (token && left > Clock::Duration::zero()) {
      const auto deadline = before + left;  // not before that: remaining() read the clock a little later
      const bool due = pace.note > Clock::Duration::zero() && after >= noted + pace.note;
      if (*token != seen || deadline > until + moved || deadline < until - moved || due) {
        journal.write(before, "lead",
                      token_field(*token) + nanoseconds("after", after) + nanoseconds("until", deadline));
        until = deadline;
        noted = after;
      }
      seen = *token;
    } else if (!token && seen.value != 0) {
      journal.write(after, "follow");
      seen = {};
    }
    const auto other = leadership.incumbent();
    if (!token && other && other->token != incumbent) journal.write(after, "sees", token_field(other->token));
    if (other) incumbent = other->token;
    wait_out({clock, clock.now() + pace.look, stop});
  }
}

int run(int argc, char** argv) {
  const auto args = told(argc, argv);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Journal journal(args.text("--log"));
  if (args.number("--elections") > 0) return run_many(args, journal, signals);
  const auto opened = open(args.text("--store"), args.text("--election"), {args.text("--name"), {}});
  const auto timing = timing_of(args, opened.presets);
  LeaderManager manager(opened.backend, timing, noting(journal, args, false));
  journal.start(args.text("--name"), timing);
  take_part(
      manager, args, journal, signals,
      [&](Pace pace, const std::stop_token& stop) { sample(manager.leadership(), pace, journal, stop); },
      [&] { manager.resign(); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "candidate: %s\n", e.what());
  return 2;
}
