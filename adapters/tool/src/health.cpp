// SPDX-License-Identifier: Apache-2.0
#include "health.hpp"

#include <stdexcept>
#include <system_error>

#include <tenure/kit/logging.hpp>

#include "exit_code.hpp"
#include "place.hpp"
#ifdef TENURE_WITH_HTTP
#include <httplib.h>

#include <tenure/http.hpp>
#include <tenure/http_server.hpp>
#endif

namespace tenure::tool {

#ifdef TENURE_WITH_HTTP

struct Health::Pages {
  Pages(LeaderManager& manager, const http::SiteOptions& options, const std::string& address)
      : site(manager, options), server(site, {.address = address}) {}
  http::Site site;
  http::Server server;
};

Health::Health(LeaderManager& manager, const Candidate& self, const std::string& address,
               const std::string& step_down_token) try
    : pages_(std::make_unique<Pages>(manager, http::SiteOptions{.self = self, .step_down_token = step_down_token},
                                     address)) {
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
} catch (const std::system_error& e) {
  throw Failed(misconfigured, e.what());
}

std::string Health::address() const { return pages_->server.address(); }

bool says_that_it_leads(const std::string& address, Clock::Duration patience) {
  httplib::Client client("http://" + address);
  if (!client.is_valid()) throw Failed(misconfigured, "--http: \"" + printable(address) + "\" is not HOST:PORT");
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  client.set_connection_timeout(ms);
  client.set_read_timeout(ms);
  const auto answer = client.Get("/leader");
  if (!answer) throw Failed(unseen, printable(address) + " does not answer: " + httplib::to_string(answer.error()));
  if (answer->status != 200 && answer->status != 503)
    throw Failed(unseen,
                 printable(address) + " answers " + std::to_string(answer->status) + ", and serves no election");
  return answer->status == 200;
}

#else

bool says_that_it_leads(const std::string&, Clock::Duration) {
  throw Failed(misconfigured, "--http: this tool was built without tenure::http");
}

struct Health::Pages {};

Health::Health(LeaderManager&, const Candidate&, const std::string&, const std::string&) {
  throw Failed(misconfigured, "--http: this tool was built without tenure::http");
}

std::string Health::address() const { return {}; }

#endif

Health::~Health() = default;

}  // namespace tenure::tool
