// SPDX-License-Identifier: Apache-2.0
// What a Site tells of a manager.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <tenure/http.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/prometheus.hpp>

#include "group_look.hpp"
#include "html.hpp"
#include "look.hpp"
#include "page.hpp"
#include "state.hpp"

namespace tenure::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t history_size = 100;
constexpr auto beat = 1s;      ///< From one "status" of /events to the next.
constexpr auto pause = 100ms;  ///< Before we look again when no descriptor was left to wait with.
std::string sse(const char* event, const std::string& document) {  // which ends with a newline, and has no other
  return std::string("event: ") + event + "\ndata: " + document + "\n";
}

}  // namespace

class TENURE_HTTP_NO_EXPORT Site::OfManager final : public State, public std::enable_shared_from_this<OfManager> {
 public:
  OfManager(LeaderManager& manager, SiteOptions options) : State(std::move(options)), manager_(manager) {
    seen_ = {.metrics = manager.metrics()};
    election_ = seen_.metrics.election;
    watcher_ = start_thread("tenure-http", [this] { watch(stop_.get_token()); });
  }

  void end() override {
    stop_.request_stop();
    watcher_.join();
    State::end();
    const std::lock_guard lock(seen_mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  class Stream;
  void watch(const std::stop_token& stop);
  Look look() const;
  std::optional<Response> of_another(const Request& request) const;
  Response get(const Request& request) override;
  Response step_down(const Request& request) override;
  Response stream(bool head);
  std::string status(const Look& look, bool with_history) const;

  std::string election_;  ///< Not changed after the constructor.
  std::atomic<bool> ended_{};
  std::stop_source stop_;

  LeaderManager& manager_;

  mutable std::mutex seen_mutex_;  ///< Of what follows.
  std::condition_variable_any changed_;
  Look seen_;
  std::deque<Change> history_;
  std::uint64_t last_id_{};
  std::size_t streams_{};
  bool closed_{};

  std::thread watcher_;
};

/// Follows the manager's changes. It uses the manager without the lock, because end() joins it first.
void Site::OfManager::watch(const std::stop_token& stop) {
  for (std::uint64_t count = 0; !stop.stop_requested() && !ended_;) {
    const auto before = count;
    count = manager_.changes();
    try {
      // A lease that ends, or goes on after all, is no change that is counted.
      if (count == before) count = manager_.await_change(count, beat, stop);
      ended_ = manager_.await_ended(Clock::Duration::zero());
    } catch (const std::system_error&) {
      std::unique_lock lock(seen_mutex_);
      changed_.wait_for(lock, stop, pause, [] { return false; });
    }
    const Look now{manager_.metrics(), manager_.leadership().incumbent(), ended_};
    const auto unix_ms = boot_clock().unix_ms();
    const std::lock_guard lock(seen_mutex_);
    for (auto& change : changes_between(seen_, now)) {
      change.id = ++last_id_;
      change.unix_ms = unix_ms;
      history_.push_back(std::move(change));
      if (history_.size() > history_size) history_.pop_front();
    }
    seen_ = now;
    changed_.notify_all();
  }
}

/// Whether we lead is judged last.
Look Site::OfManager::look() const {
  const auto leadership = manager_.leadership();
  Look out{manager_.metrics(), leadership.incumbent(), ended_, manager_.last_error()};
  out.metrics.remaining = leadership.remaining();
  out.metrics.token = leadership.token();
  out.metrics.is_leader = out.metrics.token.has_value();
  if (!out.metrics.is_leader) out.metrics.remaining = Clock::Duration::zero();
  return out;
}

std::string Site::OfManager::status(const Look& look, bool with_history) const {
  const std::lock_guard lock(seen_mutex_);
  return status_document(look, options_, history_, with_history);
}

/// One client of /events.
class TENURE_HTTP_NO_EXPORT Site::OfManager::Stream final : public Events {
 public:
  /// REQUIRES: the state's seen_mutex_ is held.
  explicit Stream(std::shared_ptr<OfManager> state) : state_(std::move(state)) { ++state_->streams_; }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() override {
    const std::lock_guard lock(state_->seen_mutex_);
    --state_->streams_;
  }

  std::optional<std::string> next(std::stop_token stop) override {
    if (!begun_) return begin();
    std::string out;
    {
      std::unique_lock lock(state_->seen_mutex_);
      const auto news = [this] { return state_->closed_ || state_->last_id_ != told_; };
      state_->changed_.wait_for(lock, stop, beat, news);
      for (const auto& change : state_->history_)
        if (change.id > told_)
          out += "id: " + std::to_string(change.id) + "\n" + sse("change", change_document(change));
      told_ = state_->last_id_;
      if (out.empty() && (state_->closed_ || stop.stop_requested())) return std::nullopt;
    }
    if (const auto look = seen()) out += sse("status", state_->status(*look, false));
    return out.empty() ? std::nullopt : std::optional(std::move(out));
  }

 private:
  std::optional<std::string> begin() {
    begun_ = true;
    const auto look = seen();
    if (!look) return std::nullopt;
    const std::lock_guard lock(state_->seen_mutex_);
    told_ = state_->last_id_;
    return "retry: 2000\n" + sse("status", status_document(*look, state_->options_, state_->history_, true));
  }

  /// Nothing: the manager may be gone.
  std::optional<Look> seen() const {
    const std::lock_guard lock(state_->mutex_);
    return state_->gone_ ? std::nullopt : std::optional(state_->look());
  }

  std::shared_ptr<OfManager> state_;
  bool begun_{};
  std::uint64_t told_{};
};

/// Whoever names an election gets no answer about another one.
std::optional<Response> Site::OfManager::of_another(const Request& request) const {
  const auto named = parameter(request.query, "election");
  if (!named || *named == election_) return std::nullopt;
  return refusal(404, "this process takes part in the election \"" + election_ + "\" alone");
}

Response Site::OfManager::get(const Request& request) {
  if (auto no = of_another(request)) return *std::move(no);
  const auto path = request.path;
  const auto seen = look();
  const auto& m = seen.metrics;
  if (path == "/leader") return json_response(m.is_leader ? 200 : 503, leader_document(seen, options_));
  const auto ails = ailment(m, options_.stuck_after);
  if (path == "/healthz") return health_answer(ails, m.stalled);
  if (path == "/readyz")
    return readiness_answer(!ails.empty()                     ? ails
                            : seen.ended                      ? "it takes part no more"
                            : m.stalled                       ? "its work stalled and has not gone on since"
                            : !m.is_leader && !seen.incumbent ? "the store has not said who leads"
                                                              : "");
  if (path == "/status") return json_response(200, status(seen, true));
  if (path == "/metrics") return {.status = 200, .type = prometheus::content_type, .body = prometheus::to_text({m})};
  if (path == "/events") return stream(request.method == "HEAD");
  if (path == "/") return html(page);
  return refusal(404, "there is /, /leader, /healthz, /readyz, /status, /metrics, /events and /step-down");
}

Response Site::OfManager::stream(bool head) {
  Response out{.status = 200, .type = "text/event-stream"};
  if (head) return out;
  const std::lock_guard lock(seen_mutex_);
  if (streams_ >= options_.streams) {
    out = refusal(503, "as many clients as may be are here already");
    out.headers.emplace_back("Retry-After", "5");
    return out;
  }
  out.events = std::make_shared<Stream>(shared_from_this());
  return out;
}

Response Site::OfManager::step_down(const Request& request) {
  if (auto no = of_another(request)) return *std::move(no);
  const auto token = manager_.leadership().token();
  if (token) manager_.resign();
  return step_down_answer(token.has_value(), token);
}

Site::Site(LeaderManager& manager, SiteOptions options)
    : state_(std::make_shared<OfManager>(manager, std::move(options))) {}

}  // namespace tenure::http
