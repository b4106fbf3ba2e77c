// SPDX-License-Identifier: Apache-2.0
// What a Site answers whatever it tells of: a manager, or many elections.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include <tenure/http.hpp>

#include "look.hpp"

namespace tenure::http {

inline Response json_response(int status, std::string body) {
  return {.status = status, .type = "application/json", .body = std::move(body)};
}
inline Response health_answer(const std::string& ails, bool stalled = false) {
  return json_response(ails.empty() ? 200 : 503, healthz_document(ails, stalled));
}
inline Response readiness_answer(const std::string& lacking) {
  return json_response(lacking.empty() ? 200 : 503, readyz_document(lacking));
}
inline Response refusal(int status, const std::string& message) {
  return json_response(status, error_document(message));
}

/// What is mounted holds this, also when the Site is gone.
class TENURE_HTTP_NO_EXPORT Site::State {
 public:
  explicit State(SiteOptions options);
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// What it tells of may go after that.
  virtual void end() = 0;

  /// Then the threads are the parent's, and a lock may have been held at the fork: touch neither.
  bool forked() const;

  Response answer(const Request& request);

 protected:
  const SiteOptions options_;

 private:
  Response answer_to(const Request& request);
  /// Nothing: what it tells of may be gone. Both throw std::invalid_argument for a query that is wrong.
  virtual std::optional<Response> get(const Request& request) = 0;
  virtual std::optional<Response> step_down(const Request& request) = 0;  ///< Whoever asks may.
  Response asked_to_step_down(const Request& request);

  const pid_t made_by_;
};

}  // namespace tenure::http
