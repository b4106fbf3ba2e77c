// SPDX-License-Identifier: Apache-2.0
// What a process tells by HTTP, by an installed library that is linked to another room's.
#include <cstdio>

#include <tenure/http_server.hpp>
#include <tenure/memory.hpp>

int main() {
  const tenure::memory::Hub hub;
  tenure::LeaderManager manager(tenure::memory::open(hub, "jobs"), tenure::memory::presets().balanced);
  const tenure::http::Site site(manager);
  const tenure::http::Server server(site);
  std::puts(site.answer({.method = "GET", .path = "/healthz"}).status == 200 ? "opened" : "not healthy");
}
