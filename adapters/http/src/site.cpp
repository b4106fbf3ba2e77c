// SPDX-License-Identifier: Apache-2.0
// Answers what does not depend on the subject: the method, the token, the end of the Site.
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include <tenure/http.hpp>

#include "bearer.hpp"
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
        "SiteOptions::step_down_token: a header cannot carry it; take visible ASCII without '%', which httplib "
        "decodes");
  if (options.stuck_after <= Clock::Duration::zero())
    throw std::invalid_argument("SiteOptions::stuck_after: it must be more than 0");
  return options;
}

/// httplib decodes "%0D". None of ours has such a byte, and no log or page of somebody else's is to get it from us.
bool visible(std::string_view path) {
  return std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Response gone() { return refusal(503, "this process takes part no more"); }

}  // namespace

Site::State::State(SiteOptions options) : options_(checked(std::move(options))), made_by_(::getpid()) {}

bool Site::State::forked() const { return ::getpid() != made_by_; }

Response Site::State::answer(const Request& request) {
  Response out;
  try {
    out = answer_to(request);
  } catch (const std::invalid_argument& e) {  // of the query
    out = refusal(400, e.what());
  }
  out.headers.emplace_back("Cache-Control", "no-store");
  out.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return out;
}

Response Site::State::answer_to(const Request& request) {
  if (forked()) return refusal(503, "this process was forked from the one that takes part");
  if (!visible(request.path)) return refusal(400, "the path has a character that is not visible ASCII");
  if (request.path == "/step-down") return asked_to_step_down(request);
  if (request.method != "GET" && request.method != "HEAD") {
    auto out = refusal(405, "only GET and HEAD are answered here");
    out.headers.emplace_back("Allow", "GET, HEAD");
    return out;
  }
  return get(request).value_or(gone());
}

Response Site::State::asked_to_step_down(const Request& request) {
  if (request.method != "POST") {
    auto out = refusal(405, "only POST is answered here");
    out.headers.emplace_back("Allow", "POST");
    return out;
  }
  if (options_.step_down_token.empty()) return refusal(403, "no token is configured, so nobody may ask for this");
  if (!bears(request.authorization, options_.step_down_token)) {
    auto out = refusal(401, "the header Authorization must be: Bearer, a blank, and the token");
    out.headers.emplace_back("WWW-Authenticate", "Bearer");
    return out;
  }
  return step_down(request).value_or(gone());
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
