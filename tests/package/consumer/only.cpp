// SPDX-License-Identifier: Apache-2.0
// A seat at one store, by its URL; nothing else is linked.
#include HEADER

#include <cstdio>

int main() {
  tenure::Opening opening;
  opening.url = URL;
  opening.election = "jobs";
  if (OPEN(opening).backend) std::puts("seated");
}
