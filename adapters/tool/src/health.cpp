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

#include <nlohmann/json.hpp>
#include <tenure/http.hpp>
#include <tenure/http_server.hpp>
#endif

namespace tenure::tool {

#ifdef TENURE_WITH_HTTP

constexpr std::size_t most_of_a_page = 65'536;

Health serve(LeaderManager& manager, const Candidate& self, const std::string& address,
             const std::vector<std::string>& hosts, const std::string& step_down_token) try {
  const auto site =
      std::make_shared<http::Site>(manager, http::SiteOptions{.self = self, .step_down_token = step_down_token});
  const auto server = std::make_shared<http::Server>(*site, http::ServerOptions{.address = address, .hosts = hosts});
  return {site, server, server->address()};
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
} catch (const std::system_error& e) {  // It may be over soon: a port that is taken, a thread that was refused.
  throw Failed(broken, e.what());
}

namespace {

/// Whatever else listens there may answer with any status.
bool is_the_page(const std::string& body, bool leads) {
  const auto page = nlohmann::json::parse(body, nullptr, false);
  if (!page.is_object()) return false;
  const auto version = page.find("version"), leading = page.find("leading");
  return version != page.end() && *version == 1 && leading != page.end() && *leading == leads;
}

}  // namespace

bool says_that_it_leads(const std::string& address, Clock::Duration patience) {
  const auto client = std::make_shared<httplib::Client>("http://" + address);
  if (!client->is_valid()) throw Failed(misconfigured, "--http: \"" + printable(address) + "\" is not HOST:PORT");
  client->set_connection_timeout(2 * patience);  // The other limit comes first, so that one thing is said.
  client->set_read_timeout(2 * patience);
  const auto body = std::make_shared<std::string>();
  std::packaged_task<httplib::Result()> ask([client, body] {
    return client->Get("/leader", [&body = *body](const char* data, std::size_t size) {
      if (body.size() + size > most_of_a_page) return false;
      body.append(data, size);
      return true;
    });
  });
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
  const bool leads = answer->status == 200;
  if ((!leads && answer->status != 503) || !is_the_page(*body, leads))
    throw Failed(unseen, who + " answers " + std::to_string(answer->status) + ", and serves no election");
  return leads;
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
