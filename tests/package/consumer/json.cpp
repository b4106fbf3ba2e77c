// SPDX-License-Identifier: Apache-2.0
// A document and one store. The adapter links no other store.
#include <cstdio>

#include <tenure/json.hpp>
#include <tenure/memory.hpp>

int main() {
  const auto configured = tenure::from_json(R"({"store": "memory:", "election": "jobs"})", tenure::memory::open_url);
  if (configured.backend) std::puts("opened");
}
