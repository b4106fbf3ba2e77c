// SPDX-License-Identifier: Apache-2.0
// Keeps six tasks going, whichever process is lost: two groups of processes lead the same tasks, each in a Kafka
// consumer group of its own. Run it twice or more in each group, on different machines:
//   continuous "kafka://host:9092?exclusive=no&create_topic=true" north
//   continuous "kafka://host:9092?exclusive=no&create_topic=true" south
//
// In each group some process leads every task at any time, wherever one lives (Exclusive::no). A process that crashes
// leaves a gap in its own group alone. So a task is done by two, by one after a crash, and by none never, unless both
// groups lose a process at once. The tasks must be such that two may do them.
#include <csignal>
#include <iostream>
#include <string>

#include <tenure/elections.hpp>
#include <tenure/stores.hpp>

int main(int argc, char** argv) {
  const std::string side = argc == 3 ? argv[2] : "";
  if (side != "north" && side != "south") {
    std::cerr << "usage: continuous \"kafka://host:9092?exclusive=no\" north|south\n";
    return 2;
  }
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);  // before the first thread, so that sigwait() gets them

  const auto say = [&](const char* what, const std::string& task) {
    std::cout << what + task + " in the " + side + "\n" << std::flush;
  };
  // The two groups share nothing, not even a topic. With Exclusive::no the program says that it needs no token.
  const auto opened = tenure::open_many(argv[1], "continuous-" + side);
  tenure::Elections tasks(tenure::Exclusive::no, opened.store, {}, opened.presets.fast,
                          {.elected = [&](const tenure::Elected& e) { say("doing ", e.election); },
                           .ousting = [&](const tenure::Ousting& o) { say("no longer doing ", o.election); }});
  for (int i = 0; i < 6; ++i) tasks.join("task " + std::to_string(i));
  tasks.start();

  int signal = 0;
  sigwait(&end, &signal);
}
