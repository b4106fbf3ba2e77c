// SPDX-License-Identifier: Apache-2.0
// Serves and asks the HTTP pages of `tenure run --http`.
#include "health.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <optional>
#include <stdexcept>
#include <system_error>

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

struct Health::Pages {
  Pages(LeaderManager& manager, const http::SiteOptions& options, const http::ServerOptions& how)
      : site(manager, options), server(site, how) {}
  http::Site site;
  http::Server server;
};

Health::Health(LeaderManager& manager, const Candidate& self, const std::string& address,
               const std::vector<std::string>& hosts, const std::string& step_down_token) try
    : pages_(std::make_unique<Pages>(manager, http::SiteOptions{.self = self, .step_down_token = step_down_token},
                                     http::ServerOptions{.address = address, .hosts = hosts})) {
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
} catch (const std::system_error& e) {
  throw Failed(misconfigured, e.what());
}

std::string Health::address() const { return pages_->server.address(); }

namespace {

/// What a process tells that asked.
struct Heard {
  int status;  ///< 0: no answer.
  char why[200];
};

Heard ask(const std::string& address, Clock::Duration patience) {
  httplib::Client client("http://" + address);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  client.set_connection_timeout(ms);
  client.set_read_timeout(ms);
  const auto answer = client.Get("/leader");
  Heard heard{answer ? answer->status : 0, {}};
  if (!answer) httplib::to_string(answer.error()).copy(heard.why, sizeof heard.why - 1);
  return heard;
}

/// By a process of its own: a name's lookup cannot be ended, and httplib limits each read alone. Nothing: it took too
/// long. REQUIRES: this process has one thread.
std::optional<Heard> ask_within(const std::string& address, Clock::Duration patience) {
  int both[2];
  if (::pipe2(both, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "no pipe");
  const auto asker = ::fork();
  if (asker < 0) throw std::system_error(errno, std::generic_category(), "no process");
  if (asker == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto heard = ask(address, 2 * patience);  // The asker's limit comes first, so that one thing is said.
    ::_exit(::write(both[1], &heard, sizeof heard) == sizeof heard ? ok : broken);
  }
  ::close(both[1]);
  pollfd answers{both[0], POLLIN, 0};
  Heard heard{};
  const bool in_time = ::poll(&answers, 1, static_cast<int>(std::min<std::int64_t>(in_ms(patience), INT_MAX))) > 0 &&
                       ::read(both[0], &heard, sizeof heard) == sizeof heard;
  ::close(both[0]);
  ::kill(asker, SIGKILL);
  ::waitpid(asker, nullptr, 0);
  return in_time ? std::optional(heard) : std::nullopt;
}

}  // namespace

bool says_that_it_leads(const std::string& address, Clock::Duration patience) {
  if (!httplib::Client("http://" + address).is_valid())
    throw Failed(misconfigured, "--http: \"" + printable(address) + "\" is not HOST:PORT");
  const auto heard = ask_within(address, patience);
  if (!heard) throw Failed(unseen, printable(address) + " does not answer within " + seconds(patience));
  if (heard->status == 0) throw Failed(unseen, printable(address) + " does not answer: " + heard->why);
  if (heard->status != 200 && heard->status != 503)
    throw Failed(unseen, printable(address) + " answers " + std::to_string(heard->status) + ", and serves no election");
  return heard->status == 200;
}

#else

bool says_that_it_leads(const std::string&, Clock::Duration) {
  throw Failed(misconfigured, "--http: this tool was built without tenure::http");
}

struct Health::Pages {};

Health::Health(LeaderManager&, const Candidate&, const std::string&, const std::vector<std::string>&,
               const std::string&) {
  throw Failed(misconfigured, "--http: this tool was built without tenure::http");
}

std::string Health::address() const { return {}; }

#endif

Health::~Health() = default;

}  // namespace tenure::tool
