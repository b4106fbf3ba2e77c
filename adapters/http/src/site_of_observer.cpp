// SPDX-License-Identifier: Apache-2.0
// What a Site tells of a group that its process only watches.

#include <tenure/http.hpp>

#include "group_look.hpp"
#include "json.hpp"
#include "state.hpp"

namespace tenure::http {

class TENURE_HTTP_NO_EXPORT Site::OfObserver final : public State {
 public:
  OfObserver(const GroupObserver& observer, SiteOptions options) : State(std::move(options)), observer_(observer) {}

 private:
  Response get(const Request& request) override;
  Response step_down(const Request&) override { return refusal(409, "this process only watches, and leads nothing"); }
  Response leader_of(const std::string& election) const;
  std::string ails() const;
  std::string lacks() const;

  const GroupObserver& observer_;
};

Response Site::OfObserver::get(const Request& request) {
  if (request.path == "/leader") return leader_of(election_in(request));
  if (request.path == "/healthz") return health_answer(ails());
  if (request.path == "/readyz") return readiness_answer(lacks());
  if (request.path == "/status") {
    const auto after = parameter(request.query, "after").value_or("");
    return json_response(200, observed_document(observer_, options_, after));
  }
  return refusal(404, "there is /leader, /healthz, /readyz and /status");
}

/// Whoever routes wants to know where to send a request: that somebody leads is enough.
Response Site::OfObserver::leader_of(const std::string& election) const {
  Look look;
  look.incumbent = observer_.incumbent(election);
  look.error = observer_.last_error();
  look.metrics.election = election;
  return json_response(look.incumbent ? 200 : 503, leader_document(look, options_));
}

std::string Site::OfObserver::ails() const {
  const auto told = observer_.telling();
  if (told <= options_.stuck_after) return "";
  return "changed(), or the log, has not returned for " + std::to_string(ms(told)) + " ms: nothing is looked at";
}

std::string Site::OfObserver::lacks() const {
  if (auto stuck = ails(); !stuck.empty()) return stuck;
  if (const auto error = observer_.last_error()) return "the store does not answer: " + error->message;
  return observer_.changes() == 0 ? "the store has not answered yet" : "";
}

Site::Site(const GroupObserver& observer, SiteOptions options)
    : state_(std::make_shared<OfObserver>(observer, std::move(options))) {}

}  // namespace tenure::http
