// SPDX-License-Identifier: Apache-2.0
// Drives libcurl on one connection, with limits of our own.
#include "http.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/version.hpp>

#include "options.hpp"

namespace tenure::etcd {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What one answer or line may have at most, headers included, so that no server can fill our memory. An answer with a
/// record has some 2 KiB.
constexpr std::size_t most_bytes = 256 << 10;
/// Lines that came together, of a watch that nobody looked at for a while.
constexpr std::size_t most_bytes_of_lines = 4 << 20;

/// libcurl wakes by itself when there is something to do. But when it gives up one address of a name, it begins with
/// the next one only when it is asked again.
constexpr int poll_ms = 60'000, poll_ms_of_connecting = 50;

constexpr long connections_live_on = 1L << 30;  // seconds

void begin_libcurl() {
  static const auto begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (begun != CURLE_OK) throw std::runtime_error(std::string("libcurl: ") + curl_easy_strerror(begun));
}

template <class Handle>
Handle made(Handle handle) {
  if (handle == nullptr) throw std::bad_alloc();
  return handle;
}

Fault fault_of(CURLcode code) {
  switch (code) {
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CRL_BADFILE: return Fault::misconfigured;
    default: return Fault::unreachable;
  }
}

std::string remedy_of(CURLcode code) {
  switch (code) {
    case CURLE_SSL_CACERT_BADFILE: return "ca_file must name a readable file of certificates in PEM";
    case CURLE_SSL_CERTPROBLEM:
      return "cert_file and key_file must name readable files in PEM that belong together, the key without a "
             "passphrase";
    case CURLE_PEER_FAILED_VERIFICATION:
      return "ca_file must have the authority that signed the member's certificate, and the certificate must have "
             "the host by which we connect";
    case CURLE_SSL_CONNECT_ERROR:
      return "if this port has no TLS, write etcd://; if the member demands a certificate, set cert_file and key_file";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY: return "this port does not speak HTTP: name etcd's client port";
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return "if this port has TLS, write etcds://, and cert_file if it demands a certificate";
    default: return {};
  }
}

}  // namespace

Http::Http(const Options& options, const Address& to, std::string name)
    : base_((options.tls ? "https://" : "http://") + to_string(to)),
      name_(std::move(name)),
      multi_((begin_libcurl(), made(curl_multi_init()))),
      easy_(made(curl_easy_init())) {
  set_up(options);
}

Http::~Http() {
  if (asking_) curl_multi_remove_handle(multi_.get(), easy_.get());
  easy_.reset();
  multi_.reset();  // It closes the connection, by close_socket().
}

template <class Value>
void Http::set(CURLoption option, Value value) {
  if (const auto code = curl_easy_setopt(easy_.get(), option, value); code != CURLE_OK)
    throw std::runtime_error(std::string("libcurl refuses a setting: ") + curl_easy_strerror(code));
}

void Http::set_up(const Options& options) {
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PROXY, "");
  set(CURLOPT_USERAGENT, "tenure/" TENURE_VERSION);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 15L);
  set(CURLOPT_TCP_KEEPINTVL, 5L);
  set(CURLOPT_MAXAGE_CONN, connections_live_on);
  set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  set(CURLOPT_CLOSESOCKETDATA, this);
  set(CURLOPT_WRITEFUNCTION, take_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_HEADERFUNCTION, take_header);
  set(CURLOPT_HEADERDATA, this);
  if (!options.tls) return;
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_KEYPASSWD, "");  // Else OpenSSL asks on the terminal.
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.cert_file.empty()) set(CURLOPT_SSLCERT, options.cert_file.c_str());
  if (!options.key_file.empty()) set(CURLOPT_SSLKEY, options.key_file.c_str());
}

Error Http::broken(const std::string& what) const { return {Fault::unreachable, name_ + ": " + printable(what)}; }

// ---- what libcurl calls ----

curl_socket_t Http::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& http = *static_cast<Http*>(self);
  if (!http.opened_) return CURL_SOCKET_BAD;
  const int descriptor = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  http.errno_of_socket_ = descriptor < 0 ? errno : 0;
  if (descriptor < 0) return CURL_SOCKET_BAD;
  http.descriptor_ = descriptor;
  if (http.opened_(descriptor)) return descriptor;
  close_socket(self, descriptor);
  return CURL_SOCKET_BAD;
}

int Http::close_socket(void* self, curl_socket_t descriptor) {
  auto& http = *static_cast<Http*>(self);
  if (http.descriptor_ == descriptor) http.descriptor_ = -1;
  return ::close(descriptor);
}

std::size_t Http::take_body(char* data, std::size_t, std::size_t size, void* self) {
  auto& http = *static_cast<Http*>(self);
  http.received_ += size;
  if (const auto end = std::string_view(data, size).rfind('\n'); http.lines_ && end != std::string_view::npos)
    http.received_ = size - end - 1;
  if (http.received_ > most_bytes || http.body_.size() > most_bytes_of_lines) return 0;
  http.body_.append(data, size);
  return size;
}

std::size_t Http::take_header(char*, std::size_t, std::size_t size, void* self) {
  auto& http = *static_cast<Http*>(self);
  http.received_ += size;
  return http.received_ > most_bytes ? 0 : size;
}

// ---- asking ----

Result<Answer> Http::connect(const Request& request, Clock::Duration patience, Opened opened) {
  opened_ = std::move(opened);
  const auto ms = std::max<long>(1, static_cast<long>(patience / milliseconds(1)));
  set(CURLOPT_TIMEOUT_MS, ms);
  auto answer = ask(request);
  set(CURLOPT_TIMEOUT_MS, 0L);
  opened_ = nullptr;
  return answer;
}

std::optional<Error> Http::begin(const Request& request) {
  headers_.reset();
  const auto add = [this](const std::string& header) {
    auto* const longer = curl_slist_append(headers_.get(), header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  };
  add("Content-Type: application/json");
  add("Expect:");
  add("Grpc-Metadata-hasleader: true");  // A member without a leader answers so at once, and does not wait for one.
  if (!request.token.empty()) add("Authorization: " + request.token);
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_URL, (base_ + request.path).c_str());
  set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
  set(CURLOPT_COPYPOSTFIELDS, request.body.c_str());
  body_.clear();
  lines_ = false;
  received_ = taken_ = 0;
  errno_of_socket_ = 0;
  error_[0] = '\0';
  done_ = false;
  if (const auto code = curl_multi_add_handle(multi_.get(), easy_.get()); code != CURLM_OK)
    return broken(curl_multi_strerror(code));
  asking_ = true;
  return std::nullopt;
}

/// Does what can be done without waiting. An error ends the question.
std::optional<Error> Http::advance() {
  long pause_ms = 0;  // Of TLS something may be left in memory, which no poll() tells of.
  for (int running = 1; running > 0 && pause_ms == 0;)
    if (const auto code = curl_multi_perform(multi_.get(), &running); code != CURLM_OK)
      return broken(curl_multi_strerror(code));
    else if (running > 0)
      curl_multi_timeout(multi_.get(), &pause_ms);
  int left = 0;
  while (const auto* const message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto code = message->data.result;
    done_ = true;
    asking_ = false;
    // It may have opened several sockets, of which one was faster. It forgets which when the handle is removed.
    if (curl_socket_t active = CURL_SOCKET_BAD;
        descriptor_ >= 0 && curl_easy_getinfo(easy_.get(), CURLINFO_ACTIVESOCKET, &active) == CURLE_OK)
      descriptor_ = active;
    curl_multi_remove_handle(multi_.get(), easy_.get());
    if (code != CURLE_OK) return failed(code);
  }
  return std::nullopt;
}

Result<Answer> Http::finish() {
  while (!done_) {
    if (auto error = advance()) return *error;
    if (!done_) curl_multi_poll(multi_.get(), nullptr, 0, opened_ ? poll_ms_of_connecting : poll_ms, nullptr);
  }
  Answer out{.body = std::move(body_)};
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &out.status);
  return out;
}

Result<Answer> Http::ask(const Request& request) {
  if (auto error = begin(request)) return *error;
  return finish();
}

std::optional<Error> Http::begin_lines(const Request& request) {
  auto error = begin(request);
  lines_ = true;
  return error;
}

Result<std::optional<std::string>> Http::next_line() {
  for (bool looked = false;; looked = true) {
    if (const auto end = body_.find('\n', taken_); end != body_.npos) {
      const auto begin = std::exchange(taken_, end + 1);
      return std::optional(body_.substr(begin, end - begin));
    }
    body_.erase(0, std::exchange(taken_, 0));
    if (done_ && body_.empty()) return broken("it ended what has no end");
    if (done_) return std::optional(std::exchange(body_, {}));  // an error, without an end of line
    if (looked) return std::nullopt;
    if (auto error = advance()) return *error;
  }
}

bool Http::idle() const {
  if (descriptor_ < 0) return false;
  pollfd readable{descriptor_, POLLIN, 0};
  return ::poll(&readable, 1, 0) == 0;  // Nothing was asked, so that there is no answer but the stream's end.
}

Clock::Duration Http::round_trip() const {
  curl_off_t sent = 0, answered = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &sent);
  curl_easy_getinfo(easy_.get(), CURLINFO_STARTTRANSFER_TIME_T, &answered);
  return microseconds(std::max<curl_off_t>(answered - sent, 0));
}

Error Http::failed(CURLcode code) const {
  if (errno_of_socket_ != 0)
    return broken(std::string("no socket can be opened: ") + std::generic_category().message(errno_of_socket_) +
                  (errno_of_socket_ == EMFILE ? "; raise ulimit -n" : ""));
  if (code == CURLE_WRITE_ERROR)
    return broken("an answer of more than " + std::to_string(most_bytes / 1024) +
                  " KiB, far more than a record has; remove what somebody else wrote to the election's keys");
  if (code == CURLE_COULDNT_CONNECT && !opened_) return broken("it has closed the connection");
  auto error = broken(error_[0] != '\0' ? error_ : curl_easy_strerror(code));
  error.fault = fault_of(code);
  if (const auto remedy = remedy_of(code); opened_ && !remedy.empty()) error.message += " (" + remedy + ")";
  return error;
}

}  // namespace tenure::etcd
