// SPDX-License-Identifier: Apache-2.0
// Finds a member that serves, logs in, and asks it.
#include "connection.hpp"

#include <algorithm>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>

#include "options.hpp"

namespace tenure::etcd {
namespace {

/// A signed one has some hundred.
constexpr std::size_t most_bytes_of_token = 16 << 10;

web::Request status_question(const std::string& token = {}) { return post("/v3/maintenance/status", "{}", token); }

}  // namespace

Connection::Connection(const Options& options) : options_(options) {}

/// Who repeats what we sent, repeats the password as JSON has it.
Redactor Connection::redacted() const {
  const auto sent = Json(login_.password).dump(-1, ' ', true, Json::error_handler_t::replace);
  return Redactor({login_.password, sent.substr(1, sent.size() - 2), token_});
}

/// REQUIRES: the message is redacted.
Error Connection::at_member(Error error) const {
  error.message = name_ + ": " + error.message;
  return error;
}

Result<Json> Connection::read(const Answer& answer) const {
  auto json = json_of(answer, redacted());
  if (!json) return at_member(std::move(json).error());
  return json;
}

/// Another member may do better now, so the next one is tried.
void Connection::drop() {
  http_.reset();
  token_.clear();
  asked_to_watch_ = watching_ = false;
}

/// It answers, but does not serve.
void Connection::leave() {
  order_.failed(member_);
  drop();
}

// ---- finding a member ----

std::optional<Error> Connection::connect(CallThread::Attempt& attempt) {
  std::optional<Error> worst;
  ended_ = false;
  ask_credentials();
  for (const auto& member : order_.of(options_.servers)) {
    auto error = connect_to(member, attempt);
    if (!error) return std::nullopt;
    leave();
    // The user can mend the one, and the other tells more than that a member is down.
    if (!worst || error->fault != Fault::unreachable || answered_) worst = std::move(error);
    if (ended_) break;
  }
  return worst;
}

std::optional<Error> Connection::connect_to(const Address& member, CallThread::Attempt& attempt) {
  member_ = member;
  order_.tried(member);
  name_ = "etcd " + to_string(member);
  answered_ = false;
  http_ = std::make_unique<web::Http>(
      web::Site{.base = (options_.tls ? "https://" : "http://") + to_string(member),
                .name = name_,
                .tls = options_.tls,
                .ca_file = options_.ca_file,
                .cert_file = options_.cert_file,
                .key_file = options_.key_file,
                .without_tls = "etcd://; if the member demands a certificate, set cert_file and key_file",
                .with_tls = "etcds://, and cert_file if it demands a certificate"});
  const auto begun = [&](const char* step, int descriptor) {
    ended_ = !attempt.step(name_, step, descriptor);
    return !ended_;
  };
  const auto closed = [&] { return http_->broken("it is not connected, because the store is closed"); };
  if (!begun("resolving", -1)) return closed();
  const bool logs_in = !login_.user.empty();
  auto answer = http_->connect(logs_in ? login() : status_question(), attempt.patience(), [&](int descriptor) {
    return begun(options_.tls ? "TCP, TLS, introduction or login"
                              : "TCP, introduction or login; a port with TLS leaves it unanswered, or the login a "
                                "member without its majority",
                 descriptor);
  });
  if (ended_) return closed();
  if (!answer) return answer.error();
  answered_ = true;
  if (!begun("introduction", http_->descriptor())) return closed();
  Json granted;
  if (logs_in) {
    if (auto error = take_token(*answer)) return error;
    granted = parsed(answer->body);
    answer = http_->ask(status_question(token_));
    if (!answer) return answer.error();
  }
  attempt.round_trip(http_->round_trip());
  const auto status = read(*answer);
  if (status) return check_member(*status);
  // Since 3.5.28 and 3.6.0 etcd tells its status to the role root alone, or only to those who have logged in.
  if (!token_.empty() && status.error().fault == Fault::forbidden) return check_cluster(granted);
  return status.error();
}

/// A member that would only say, call after call, that it cannot answer.
std::optional<Error> Connection::check_member(const Json& status) {
  if (const auto learner = status.find("isLearner"); learner != status.end() && *learner == true)
    return http_->broken("it is a learner, which serves no candidate; name members that vote");
  const auto leader = text_at(status, "/leader");
  if (leader.empty() || leader == "0")
    return http_->broken(
        "it has no leader: the cluster has lost its majority, or is electing: etcdctl endpoint status");
  return check_cluster(status);
}

/// Two clusters that know nothing of each other would elect two leaders. A cluster that was restored has another id.
std::optional<Error> Connection::check_cluster(const Json& answer) {
  const auto cluster = text_at(answer, "/header/cluster_id");
  if (cluster.empty()) return http_->broken("its answer names no cluster");
  if (!cluster_.empty() && cluster_ != cluster && told_by_ != member_)
    return Error{Fault::misconfigured, name_ + ": it belongs to another cluster than " + to_string(told_by_) +
                                           " did. Name members of one cluster only. If it was restored, start this "
                                           "process again"};
  cluster_ = cluster;
  told_by_ = member_;
  return std::nullopt;
}

void Connection::ask_credentials() {
  login_ = options_.credentials ? credentials_by(options_.credentials, Redactor({}))
                                : Credentials{options_.user, options_.password};
  if (options_.credentials && login_.user.empty())
    throw NoCredentials("credentials returned no user, and etcd takes no password without one");
}

web::Request Connection::login() const {
  return post("/v3/auth/authenticate", Json{{"name", login_.user}, {"password", login_.password}}.dump(
                                           -1, ' ', true, Json::error_handler_t::replace));
}

std::optional<Error> Connection::log_in() {
  token_.clear();
  if (login_.user.empty()) return std::nullopt;
  const auto answer = http_->ask(login());
  if (!answer) return answer.error();
  return take_token(*answer);
}

std::optional<Error> Connection::take_token(const Answer& answer) {
  if (needs_no_login(answer)) return std::nullopt;
  const auto granted = read(answer);
  if (!granted) return granted.error();
  token_ = text_at(*granted, "/token");
  const bool fit = token_.size() <= most_bytes_of_token &&
                   std::all_of(token_.begin(), token_.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (token_.empty() || !fit) {
    token_.clear();
    return http_->broken("it answered a login without a token that a header can have");
  }
  return std::nullopt;
}

bool Connection::stands() {
  if (http_ && !(asked_to_watch_ ? http_->descriptor() >= 0 : http_->idle())) drop();
  return http_ != nullptr;
}

// ---- asking it ----

Result<Answer> Connection::answer_to(const char* path, const std::string& body, const Until& until) {
  for (bool first = true;; first = false) {
    if (until.over()) return Error{Fault::timed_out, name_ + ": the limit passed before it was asked"};
    if (!http_) return Error{Fault::unreachable, name_ + ": the connection has ended"};
    auto answer = http_->ask(post(path, body, token_));
    if (!answer) {
      drop();
      return answer;
    }
    if (first && !login_.user.empty() && asks_for_login(*answer)) {
      ask_credentials();
      if (auto error = log_in()) {
        leave();
        return *error;
      }
      continue;
    }
    return answer;
  }
}

Result<Json> Connection::ask(const char* path, const Json& question, const Until& until) {
  const auto answer = answer_to(path, question.dump(), until);
  if (!answer) return answer.error();
  auto json = read(*answer);
  if (json) order_.served(member_);
  if (!json && json.error().fault == Fault::unreachable) leave();
  return json;
}

Result<std::string> Connection::text(const char* path, const Until& until) {
  auto answer = answer_to(path, "{}", until);
  if (!answer) return std::move(answer).error();
  if (answer->status != 200) return http_->broken("HTTP status " + std::to_string(answer->status));
  return std::move(answer->body);
}

// ---- watching ----

Result<Connection::News> Connection::await_news(const std::string& key, const News& known, CallThread::Socket& socket) {
  if (!asked_to_watch_) {
    if (auto error = http_->begin_lines(post("/v3/watch", watch(key).dump(), token_))) return *error;
    asked_to_watch_ = true;
  }
  while (news_ == known) {
    const auto line = http_->next_line();
    if (line && !*line) {
      if (socket.wait()) continue;
      break;
    }
    auto error = line ? heard(**line) : std::optional(line.error());
    if (!error) continue;
    const bool stood = watching_;
    drop();
    if (!stood) return *error;
    news_ = {news_.watches + 1, std::nullopt, true};
  }
  return news_;
}

/// Takes in a line of the watch. An error ends it.
std::optional<Error> Connection::heard(const std::string& line) {
  const auto json = parsed(line);
  if (auto error = error_in(json, redacted())) return at_member(std::move(*error));
  const auto event = event_of(json);
  if (!event)
    return http_->broken("its watch brought something that is not of etcd: " + printable(redacted()(line), 80));
  if (event->canceled)
    return http_->broken("it canceled the watch: " + redacted()(text_at(json, "/result/cancel_reason")));
  if (event->created) watching_ = true;
  if (event->created || (event->changed && !event->value)) news_ = {news_.watches + 1, std::nullopt, false};
  if (event->value) news_.value = event->value;
  return std::nullopt;
}

}  // namespace tenure::etcd
