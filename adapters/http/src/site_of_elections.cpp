// SPDX-License-Identifier: Apache-2.0
// What a Site tells of many elections. It needs no thread: nobody follows their changes.
#include <algorithm>
#include <mutex>

#include <tenure/http.hpp>
#include <tenure/prometheus.hpp>

#include "group_look.hpp"
#include "group_page.hpp"
#include "html.hpp"
#include "state.hpp"

namespace tenure::http {

/// The elections are reached under the lock only, so that end() can take them away.
class TENURE_HTTP_NO_EXPORT Site::OfElections final : public State {
 public:
  OfElections(Elections& elections, SiteOptions options) : State(std::move(options)), elections_(&elections) {}

  void end() override {
    const std::lock_guard lock(mutex_);
    elections_ = nullptr;
  }

 private:
  std::optional<Response> get(const Request& request) override;
  std::optional<Response> step_down(const Request& request) override;
  std::optional<GroupLook> look(bool with_led) const;
  std::optional<Look> look_at(const std::string& election) const;
  Response page_of(std::string_view path, const GroupLook& look, const std::string& after) const;

  mutable std::mutex mutex_;  ///< Held for moments: the methods that are called do not block.
  Elections* elections_;
};

std::optional<GroupLook> Site::OfElections::look(bool with_led) const {
  const std::lock_guard lock(mutex_);
  if (!elections_) return std::nullopt;
  GroupLook out{.metrics = elections_->metrics(), .exclusive = elections_->exclusive()};
  if (with_led) out.led = elections_->led(), out.unled = elections_->unled();
  return out;
}

/// Whether we lead is judged last.
std::optional<Look> Site::OfElections::look_at(const std::string& election) const {
  const std::lock_guard lock(mutex_);
  if (!elections_) return std::nullopt;
  const auto leadership = elections_->leadership(election);
  Look out{.incumbent = leadership.incumbent()};
  auto& m = out.metrics;
  m.election = election;
  m.remaining = leadership.remaining();
  m.token = leadership.token();
  m.is_leader = leadership.exclusive() ? m.token.has_value() : leadership.is_leader();
  if (!leadership.exclusive() && out.incumbent) out.incumbent->token = {};
  return out;
}

std::optional<Response> Site::OfElections::get(const Request& request) {
  if (request.path == "/leader") {
    const auto seen = look_at(election_in(request));
    return seen ? std::optional(json_response(seen->metrics.is_leader ? 200 : 503, leader_document(*seen, options_)))
                : std::nullopt;
  }
  const bool with_led = request.path == "/status";
  const auto after = with_led ? parameter(request.query, "after") : std::nullopt;
  const auto seen = look(with_led);
  return seen ? std::optional(page_of(request.path, *seen, after.value_or(""))) : std::nullopt;
}

Response Site::OfElections::page_of(std::string_view path, const GroupLook& look, const std::string& after) const {
  const auto& m = look.metrics;
  if (path == "/healthz") return health_answer(ailment(m.session, options_.stuck_after), m.session.stalled);
  if (path == "/readyz") return readiness_answer(group_lacks(m, options_.stuck_after));
  if (path == "/status") return json_response(200, group_status_document(look, options_, after));
  if (path == "/metrics")
    return {.status = 200, .type = prometheus::content_type, .body = prometheus::to_text({}, {m})};
  if (path == "/") return html(group_page);
  return refusal(404, "there is /, /leader, /healthz, /readyz, /status, /metrics and /step-down");
}

std::optional<Response> Site::OfElections::step_down(const Request& request) {
  const auto election = election_in(request);
  const std::lock_guard lock(mutex_);
  if (!elections_) return std::nullopt;
  const auto leadership = elections_->leadership(election);
  const auto token = leadership.token();
  const bool leads = token || (!leadership.exclusive() && leadership.is_leader());
  if (leads) elections_->resign(election);
  return json_response(leads ? 202 : 409, step_down_document(leads, token));
}

Site::Site(Elections& elections, SiteOptions options)
    : state_(std::make_shared<OfElections>(elections, std::move(options))) {}

}  // namespace tenure::http
