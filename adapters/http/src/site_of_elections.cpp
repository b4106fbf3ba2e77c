// SPDX-License-Identifier: Apache-2.0
// What a Site tells of many elections. It needs no thread: nobody follows their changes.
#include <tenure/http.hpp>
#include <tenure/prometheus.hpp>

#include "group_look.hpp"
#include "group_page.hpp"
#include "html.hpp"
#include "state.hpp"

namespace tenure::http {

class TENURE_HTTP_NO_EXPORT Site::OfElections final : public State {
 public:
  OfElections(Elections& elections, SiteOptions options) : State(std::move(options)), elections_(elections) {}

 private:
  Response get(const Request& request) override;
  Response step_down(const Request& request) override;
  Look look_at(const std::string& election) const;

  Elections& elections_;
};

/// Whether we lead is judged last.
Look Site::OfElections::look_at(const std::string& election) const {
  const auto leadership = elections_.leadership(election);
  Look out{.incumbent = leadership.incumbent(), .error = elections_.last_error()};
  auto& m = out.metrics;
  m.election = election;
  m.remaining = leadership.remaining();
  m.token = leadership.token();
  m.is_leader = leadership.exclusive() ? m.token.has_value() : leadership.is_leader();
  if (!leadership.exclusive() && out.incumbent) out.incumbent->token = {};
  return out;
}

Response Site::OfElections::get(const Request& request) {
  const auto path = request.path;
  if (path == "/leader") {
    const auto seen = look_at(election_in(request));
    return json_response(seen.metrics.is_leader ? 200 : 503, leader_document(seen, options_));
  }
  if (path == "/") return html(group_page);
  const auto m = elections_.metrics();
  if (path == "/healthz") return health_answer(ailment(m.session, options_.stuck_after), m.session.stalled);
  if (path == "/readyz") return readiness_answer(group_lacks(m, options_.stuck_after));
  if (path == "/metrics")
    return {.status = 200, .type = prometheus::content_type, .body = prometheus::to_text({}, {m})};
  if (path != "/status")
    return refusal(404, "there is /, /leader, /healthz, /readyz, /status, /metrics and /step-down");
  const auto after = parameter(request.query, "after").value_or("");
  return json_response(200, group_status_document(elections_, options_, after));
}

Response Site::OfElections::step_down(const Request& request) {
  const auto election = election_in(request);
  const auto seen = look_at(election).metrics;
  if (seen.is_leader) elections_.resign(election);
  return step_down_answer(seen.is_leader, seen.token);
}

Site::Site(Elections& elections, SiteOptions options)
    : state_(std::make_shared<OfElections>(elections, std::move(options))) {}

}  // namespace tenure::http
