// SPDX-License-Identifier: Apache-2.0
// What a Site answers whatever it tells of: a manager, or many elections.
#pragma once
#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <tenure/http.hpp>

#include "look.hpp"

namespace tenure::http {

inline Response json_response(int status, std::string body) {
  return {.status = status, .type = "application/json", .body = std::move(body)};
}
Response health_answer(const std::string& ails, bool stalled = false);
Response readiness_answer(const std::string& lacking);
Response step_down_answer(bool steps_down, std::optional<Token> token);
Response refusal(int status, const std::string& message);

/// What is mounted holds this, also when the Site is gone.
class TENURE_HTTP_NO_EXPORT Site::State {
 public:
  explicit State(SiteOptions options);
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// What it tells of may go after that.
  virtual void end();

  /// Then the threads are the parent's, and a lock may have been held at the fork: touch neither.
  bool forked() const;

  Response answer(const Request& request);

 protected:
  const SiteOptions options_;
  std::mutex mutex_;  ///< Held while an answer is made. Nothing of that blocks, but a large group takes its time.
  bool gone_{};       ///< What it tells of may be.

 private:
  Response answer_to(const Request& request);
  std::optional<Response> refused(const Request& request) const;

  // Of what is not gone, while the lock is held. Both throw std::invalid_argument for a query that is wrong.
  virtual Response get(const Request& request) = 0;
  virtual Response step_down(const Request& request) = 0;  ///< Whoever asks may.

  const pid_t made_by_;
};

}  // namespace tenure::http
