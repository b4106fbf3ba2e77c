// SPDX-License-Identifier: Apache-2.0
// A backend of one store, by its URL; nothing else is linked.
#include HEADER

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  tenure::Opening opening;
  opening.url = argc > 1 ? argv[1] : URL;
  opening.election = "jobs";
  try {
    if (OPEN(opening).backend) std::puts("opened");
  } catch (const std::exception& e) {
    std::puts(e.what());
  }
}
