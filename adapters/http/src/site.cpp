// SPDX-License-Identifier: Apache-2.0
// Answers what does not depend on the subject: the method, the token, the end of the Site.
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include <tenure/http.hpp>

#include "bearer.hpp"
#include "json.hpp"
#include "state.hpp"

namespace tenure::http {
namespace {

constexpr std::size_t least_token = 16;

SiteOptions checked(SiteOptions options) {
  const auto& token = options.step_down_token;
  if (!token.empty() && token.size() < least_token)
    throw std::invalid_argument("SiteOptions::step_down_token: it has fewer than 16 characters");
  if (std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c >= '\x7f' || c == '%'; }))
    throw std::invalid_argument(
        "SiteOptions::step_down_token: a header cannot carry it; take visible ASCII without '%', which "
        "httplib decodes where the site is mounted there");
  if (options.stuck_after <= Clock::Duration::zero())
    throw std::invalid_argument("SiteOptions::stuck_after: it must be more than 0");
  return options;
}

/// A server decodes "%0D". None of ours has such a byte, and no log or page of somebody else's is to get it from us.
bool visible(std::string_view path) {
  return std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Response with(Response response, const char* header, const char* value) {
  response.headers.emplace_back(header, value);
  return response;
}

}  // namespace

Response health_answer(const std::string& ails, bool stalled) {
  return json_response(ails.empty() ? 200 : 503,
                       document_of({{"healthy", ails.empty()}, {"why", ails}, {"stalled", stalled}}));
}

Response readiness_answer(const std::string& lacking) {
  return json_response(lacking.empty() ? 200 : 503, document_of({{"ready", lacking.empty()}, {"why", lacking}}));
}

Response step_down_answer(bool steps_down, std::optional<Token> token) {
  return json_response(steps_down ? 202 : 409, document_of({{"steps_down", steps_down}, {"token", json(token)}}));
}

Response refusal(int status, const std::string& message) {
  return json_response(status, document_of({{"error", {{"message", message}}}}));
}

Site::State::State(SiteOptions options) : options_(checked(std::move(options))), made_by_(::getpid()) {}

void Site::State::end() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
}

bool Site::State::forked() const { return ::getpid() != made_by_; }

Response Site::State::answer(const Request& request) {
  Response out;
  try {
    out = answer_to(request);
  } catch (const std::invalid_argument& e) {  // of the query
    out = refusal(400, e.what());
  }
  return with(with(std::move(out), "Cache-Control", "no-store"), "X-Content-Type-Options", "nosniff");
}

Response Site::State::answer_to(const Request& request) {
  if (forked()) return refusal(503, "this process was forked from the one that takes part");
  if (auto no = refused(request)) return *std::move(no);
  const std::lock_guard lock(mutex_);
  if (gone_) return refusal(503, "this process takes part no more");
  return request.path == "/step-down" ? step_down(request) : get(request);
}

std::optional<Response> Site::State::refused(const Request& request) const {
  if (!visible(request.path)) return refusal(400, "the path has a character that is not visible ASCII");
  if (request.path != "/step-down") {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return with(refusal(405, "only GET and HEAD are answered here"), "Allow", "GET, HEAD");
  }
  if (request.method != "POST") return with(refusal(405, "only POST is answered here"), "Allow", "POST");
  if (options_.step_down_token.empty()) return refusal(403, "no token is configured, so nobody may ask for this");
  if (bears(request.authorization, options_.step_down_token)) return std::nullopt;
  return with(refusal(401, "the header Authorization must be: Bearer, a blank, and the token"), "WWW-Authenticate",
              "Bearer");
}

Site::~Site() {
  if (state_->forked())
    new std::shared_ptr<State>(std::move(state_));  // Left as it is: its thread is the parent's.
  else
    state_->end();
}

std::function<Response(const Request&)> Site::answerer() const {
  return [state = state_](const Request& request) { return state->answer(request); };
}

}  // namespace tenure::http
