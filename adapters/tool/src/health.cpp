// SPDX-License-Identifier: Apache-2.0
// Serves and asks the HTTP pages of `tenure run --http`.
#include "health.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <tenure/kit/logging.hpp>

#include "durations.hpp"
#include "exit_code.hpp"
#include "place.hpp"
#ifdef TENURE_WITH_HTTP
#include <httplib.h>

#include <tenure/http.hpp>
#include <tenure/http_server.hpp>
#endif

namespace tenure::tool {

#ifdef TENURE_WITH_HTTP

Health serve(LeaderManager& manager, const Candidate& self, const std::string& address,
             const std::vector<std::string>& hosts, const std::string& step_down_token) try {
  const auto site =
      std::make_shared<http::Site>(manager, http::SiteOptions{.self = self, .step_down_token = step_down_token});
  const auto server = std::make_shared<http::Server>(*site, http::ServerOptions{.address = address, .hosts = hosts});
  return {site, server, server->address()};
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
} catch (const std::system_error& e) {
  throw Failed(misconfigured, e.what());
}

namespace {

std::string too_late;

void give_up(int) {
  const auto told = ::write(STDERR_FILENO, too_late.data(), too_late.size());
  ::_exit(told < 0 ? broken : unseen);
}

/// Ends this process, for a name's lookup cannot be ended, and httplib limits each read alone. REQUIRES: one thread.
void give_up_after(Clock::Duration patience, std::string saying) {
  too_late = std::move(saying);
  std::signal(SIGALRM, give_up);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);  // a parent may have left it blocked
  const auto us = std::chrono::ceil<std::chrono::microseconds>(patience).count();
  const itimerval once{{}, {us / 1'000'000, us % 1'000'000}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

}  // namespace

bool says_that_it_leads(const std::string& address, Clock::Duration patience) {
  httplib::Client client("http://" + address);
  if (!client.is_valid()) throw Failed(misconfigured, "--http: \"" + printable(address) + "\" is not HOST:PORT");
  const auto who = printable(address);
  give_up_after(patience, "tenure: " + who + " does not answer within " + seconds(patience) + "\n");
  client.set_connection_timeout(2 * patience);  // The other limit comes first, so that one thing is said.
  client.set_read_timeout(2 * patience);
  const auto answer = client.Get("/leader");
  if (!answer) throw Failed(unseen, who + " does not answer: " + httplib::to_string(answer.error()));
  if (answer->status == 421)
    throw Failed(unseen, who + " answers to other names: ask by a number, or name this one there by --http-host");
  if (answer->status != 200 && answer->status != 503)
    throw Failed(unseen, who + " answers " + std::to_string(answer->status) + ", and serves no election");
  return answer->status == 200;
}

#else

bool says_that_it_leads(const std::string&, Clock::Duration) {
  throw Failed(misconfigured, "--http: this tool was built without tenure::http");
}

Health serve(LeaderManager&, const Candidate&, const std::string&, const std::vector<std::string>&,
             const std::string&) {
  throw Failed(misconfigured, "--http: this tool was built without tenure::http");
}

#endif

}  // namespace tenure::tool
