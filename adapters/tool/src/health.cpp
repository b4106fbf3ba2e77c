// SPDX-License-Identifier: Apache-2.0
// Serves and asks the HTTP pages of `tenure run --http`.
#include "health.hpp"

#include <unistd.h>

#include <chrono>
#include <future>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/start_thread.hpp>

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

bool says_that_it_leads(const std::string& address, Clock::Duration patience) {
  const auto client = std::make_shared<httplib::Client>("http://" + address);
  if (!client->is_valid()) throw Failed(misconfigured, "--http: \"" + printable(address) + "\" is not HOST:PORT");
  client->set_connection_timeout(2 * patience);  // The other limit comes first, so that one thing is said.
  client->set_read_timeout(2 * patience);
  std::packaged_task<httplib::Result()> ask([client] { return client->Get("/leader"); });
  auto answered = ask.get_future();
  const auto who = printable(address);
  try {
    leave_behind(start_thread("tenure-ask", std::move(ask)));
  } catch (const std::system_error&) {
    throw Failed(unseen, who + " was not asked: no thread is left for it; raise the limit of processes");
  }
  if (answered.wait_for(patience) == std::future_status::timeout) {
    std::cerr << "tenure: " << who << " does not answer within " << seconds(patience) << std::endl;
    ::_exit(unseen);  // A name's lookup cannot be ended, and httplib limits each read alone.
  }
  const auto answer = answered.get();
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
