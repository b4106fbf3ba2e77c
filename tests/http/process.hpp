// SPDX-License-Identifier: Apache-2.0
// One process that takes part in an election, as these tests see it: a manager and what it tells by HTTP.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include <tenure/http.hpp>
#include <tenure/http_server.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/memory.hpp>

#include "client.hpp"
#include "eventually.hpp"

namespace tenure::test {

inline Hooks quiet() {
  Hooks hooks;
  hooks.log = no_log;
  return hooks;
}

struct Process {
  explicit Process(const memory::Hub& hub, const Candidate& self = {"a", "10.0.0.7:80"}, http::SiteOptions options = {},
                   const http::ServerOptions& how = {}, const Timing& timing = memory::presets().balanced)
      : manager(std::in_place, memory::open(hub, "jobs", self, no_log), timing, quiet()) {
    options.self = self;
    site.emplace(*manager, options);
    server.emplace(*site, how);
  }
  Process& start() {
    manager->start();
    return *this;
  }
  Process& lead() {
    start();
    manager->await_leadership(std::chrono::seconds(30));
    return *this;
  }
  Fetched get(const std::string& path) const { return fetch(server->address(), path); }
  Fetched step_down(const std::string& token) const {
    return fetch(server->address(), "/step-down", "POST", "Authorization: Bearer " + token + "\r\n");
  }

  std::optional<LeaderManager> manager;
  std::optional<http::Site> site;
  std::optional<http::Server> server;
};

struct OnAHub : testing::Test {
  memory::Hub hub;
};

}  // namespace tenure::test
