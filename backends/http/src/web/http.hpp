// SPDX-License-Identifier: Apache-2.0
// One connection to one server, by which HTTP requests go one after the other: libcurl, with limits of our own. It is a
// header alone, because two libraries of one program use it, and neither exports it.
#pragma once
#include <curl/curl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/result.hpp>
#include <tenure/version.hpp>

namespace tenure::web {

/// What one answer or line may have at most, headers included, so that no server can fill our memory. An answer with a
/// record has some 2 KiB.
inline constexpr std::size_t most_bytes = 256 << 10;

/// Where a server is, and how messages speak of it.
struct Site {
  std::string base{};  ///< "https://host:port"
  std::string name{};  ///< "etcd 127.0.0.1:2379", for messages.
  bool tls{};
  std::string ca_file{}, cert_file{}, key_file{};  ///< For TLS. Empty: those of the system, and none of ours.
  std::string without_tls{}, with_tls{};  ///< What to write for the one and the other. Empty: nothing is advised.
};

struct Request {
  std::string method{}, path{};  ///< "POST", "/path?query"
  std::string body{};
  std::vector<std::string> headers{};      ///< "Name: value"
  std::string signing{}, key{}, secret{};  ///< CURLOPT_AWS_SIGV4 and what it signs by. Empty: nothing is signed.
};

struct Answer {
  long status{};
  std::string body{};
  std::string head{};  ///< Its lines, as they came.
};

/// What libcurl has made. Throws std::bad_alloc if it has not.
template <class Handle>
Handle made(Handle handle) {
  if (handle == nullptr) throw std::bad_alloc();
  return handle;
}

/// libcurl of its own accord connects anew, and then sends again what had no answer. Here it never does: a write is
/// sent once. What blocks ends when somebody shuts descriptor() down, or by its patience. REQUIRES: one thread at a
/// time.
class Http {
 public:
  /// Told of each socket that is opened. If it returns false, the socket is not used.
  using Opened = std::function<bool(int descriptor)>;

  explicit Http(Site site);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Makes the connection and asks the first question, all within `patience`.
  Result<Answer> connect(const Request& request, Clock::Duration patience, Opened opened);

  /// `patience`: zero has no end.
  Result<Answer> ask(const Request& request, Clock::Duration patience = {});

  /// Begins a question whose answer comes in lines and has no end.
  std::optional<Error> begin_lines(const Request& request);
  /// Returns the next line that has come, or nothing: then wait for descriptor(). It does not block.
  Result<std::optional<std::string>> next_line();

  /// Whether the connection stands and nothing has come unasked, such as its end.
  bool idle() const;
  int descriptor() const { return descriptor_; }
  Clock::Duration round_trip() const;  ///< What the last question took.

  Error broken(const std::string& what) const;

 private:
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int close_socket(void* self, curl_socket_t descriptor);
  static std::size_t take_body(char* data, std::size_t one, std::size_t size, void* self);
  static std::size_t take_header(char* data, std::size_t one, std::size_t size, void* self);

  std::optional<Error> begin(const Request& request);
  std::optional<Error> advance();
  void set_up();
  void set_headers(const std::vector<std::string>& headers);
  template <class Value>
  void set(CURLoption option, Value value);
  Result<Answer> finish();
  Error failed(CURLcode code) const;
  std::string remedy_of(CURLcode code) const;

  const Site site_;
  CHandle<CURLM, curl_multi_cleanup> multi_;
  CHandle<CURL, curl_easy_cleanup> easy_;
  CHandle<curl_slist, curl_slist_free_all> headers_;
  Opened opened_;       ///< Set while a connection may be made.
  int descriptor_{-1};  ///< libcurl closes it.
  int errno_of_socket_{};
  bool asking_{};  ///< `easy_` is in `multi_`.
  bool done_{};
  bool lines_{};         ///< The answer comes in lines, and has no end: most_bytes bounds a line.
  std::size_t taken_{};  ///< How many bytes of the answer were returned as lines.
  std::string body_;
  std::size_t received_{};  ///< Bytes of this answer, or of a line that has no end yet.
  std::string head_;
  char error_[CURL_ERROR_SIZE]{};
};

// ---- the handle ----

inline void begin_libcurl() {
  static const auto begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (begun != CURLE_OK) throw std::runtime_error(std::string("libcurl: ") + curl_easy_strerror(begun));
}

inline Http::Http(Site site)
    : site_(std::move(site)), multi_((begin_libcurl(), made(curl_multi_init()))), easy_(made(curl_easy_init())) {
  set_up();
}

inline Http::~Http() {
  if (asking_) curl_multi_remove_handle(multi_.get(), easy_.get());
  easy_.reset();
  multi_.reset();  // It closes the connection, by close_socket().
}

template <class Value>
void Http::set(CURLoption option, Value value) {
  if (const auto code = curl_easy_setopt(easy_.get(), option, value); code != CURLE_OK)
    throw std::runtime_error(std::string("libcurl refuses a setting: ") + curl_easy_strerror(code));
}

inline void Http::set_up() {
  constexpr long connections_live_on = 1L << 30;  // seconds
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
  if (!site_.tls) return;
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_KEYPASSWD, "");  // Else OpenSSL asks on the terminal.
  if (!site_.ca_file.empty()) set(CURLOPT_CAINFO, site_.ca_file.c_str());
  if (!site_.cert_file.empty()) set(CURLOPT_SSLCERT, site_.cert_file.c_str());
  if (!site_.key_file.empty()) set(CURLOPT_SSLKEY, site_.key_file.c_str());
}

inline Error Http::broken(const std::string& what) const {
  return {Fault::unreachable, site_.name + ": " + printable(what)};
}

// ---- what libcurl calls ----

inline curl_socket_t Http::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
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

inline int Http::close_socket(void* self, curl_socket_t descriptor) {
  auto& http = *static_cast<Http*>(self);
  if (http.descriptor_ == descriptor) http.descriptor_ = -1;
  return ::close(descriptor);
}

inline std::size_t Http::take_body(char* data, std::size_t, std::size_t size, void* self) {
  constexpr std::size_t most_bytes_of_lines = 4 << 20;  // that came together, as nobody looked at them for a while
  auto& http = *static_cast<Http*>(self);
  http.received_ += size;
  if (const auto end = std::string_view(data, size).rfind('\n'); http.lines_ && end != std::string_view::npos)
    http.received_ = size - end - 1;
  if (http.received_ > most_bytes || http.body_.size() > most_bytes_of_lines) return 0;
  http.body_.append(data, size);
  return size;
}

inline std::size_t Http::take_header(char* data, std::size_t, std::size_t size, void* self) {
  auto& http = *static_cast<Http*>(self);
  http.received_ += size;
  if (http.received_ > most_bytes) return 0;
  http.head_.append(data, size);
  return size;
}

// ---- asking ----

inline Result<Answer> Http::connect(const Request& request, Clock::Duration patience, Opened opened) {
  opened_ = std::move(opened);
  auto answer = ask(request, std::max<Clock::Duration>(patience, std::chrono::milliseconds(1)));
  opened_ = nullptr;
  return answer;
}

inline void Http::set_headers(const std::vector<std::string>& headers) {
  headers_.reset();
  for (const auto& header : headers) {
    auto* const longer = made(curl_slist_append(headers_.get(), header.c_str()));
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }
  set(CURLOPT_HTTPHEADER, headers_.get());
}

inline std::optional<Error> Http::begin(const Request& request) {
  set_headers(request.headers);
  set(CURLOPT_URL, (site_.base + request.path).c_str());
  if (request.method == "GET") {
    set(CURLOPT_HTTPGET, 1L);
  } else {
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    set(CURLOPT_COPYPOSTFIELDS, request.body.c_str());
  }
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.signing.empty()) {
    set(CURLOPT_AWS_SIGV4, request.signing.c_str());
    set(CURLOPT_USERNAME, request.key.c_str());
    set(CURLOPT_PASSWORD, request.secret.c_str());
  }
  body_.clear();
  head_.clear();
  lines_ = false;
  received_ = 0;
  errno_of_socket_ = 0;
  error_[0] = '\0';
  done_ = false;
  if (const auto code = curl_multi_add_handle(multi_.get(), easy_.get()); code != CURLM_OK)
    return broken(curl_multi_strerror(code));
  asking_ = true;
  return std::nullopt;
}

/// Does what can be done without waiting. An error ends the question.
inline std::optional<Error> Http::advance() {
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
    // It may have opened several sockets, of which one was faster, perhaps the first. It forgets which when the handle
    // is removed.
    if (curl_socket_t active = CURL_SOCKET_BAD;
        curl_easy_getinfo(easy_.get(), CURLINFO_ACTIVESOCKET, &active) == CURLE_OK)
      descriptor_ = active;
    curl_multi_remove_handle(multi_.get(), easy_.get());
    if (code != CURLE_OK) return failed(code);
  }
  return std::nullopt;
}

inline Result<Answer> Http::finish() {
  // libcurl wakes by itself when there is something to do. But when it gives up one address of a name, it begins with
  // the next one only when it is asked again.
  constexpr int poll_ms = 60'000, poll_ms_of_connecting = 50;
  while (!done_) {
    if (auto error = advance()) return *error;
    if (done_) break;
    const auto code = curl_multi_poll(multi_.get(), nullptr, 0, opened_ ? poll_ms_of_connecting : poll_ms, nullptr);
    if (code != CURLM_OK) sleep_for(std::chrono::milliseconds(poll_ms_of_connecting));  // No memory, for instance.
  }
  Answer out{.body = std::move(body_), .head = std::move(head_)};
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &out.status);
  return out;
}

inline Result<Answer> Http::ask(const Request& request, Clock::Duration patience) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(ms.count()));
  auto error = begin(request);
  auto answer = error ? Result<Answer>(*std::move(error)) : finish();
  set(CURLOPT_TIMEOUT_MS, 0L);
  return answer;
}

inline std::optional<Error> Http::begin_lines(const Request& request) {
  auto error = begin(request);
  lines_ = true;
  taken_ = 0;
  return error;
}

inline Result<std::optional<std::string>> Http::next_line() {
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

inline bool Http::idle() const {
  if (descriptor_ < 0) return false;
  pollfd readable{descriptor_, POLLIN, 0};
  return ::poll(&readable, 1, 0) == 0;  // Nothing was asked, so that there is no answer but the stream's end.
}

inline Clock::Duration Http::round_trip() const {
  curl_off_t sent = 0, answered = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &sent);
  curl_easy_getinfo(easy_.get(), CURLINFO_STARTTRANSFER_TIME_T, &answered);
  return std::chrono::microseconds(std::max<curl_off_t>(answered - sent, 0));
}

/// Of a connection that cannot be made.
inline std::string Http::remedy_of(CURLcode code) const {
  if (site_.with_tls.empty()) return {};
  switch (code) {
    case CURLE_SSL_CACERT_BADFILE: return "ca_file must name a readable file of certificates in PEM";
    case CURLE_SSL_CERTPROBLEM:
      return "cert_file and key_file must name readable files in PEM that belong together, the key without a "
             "passphrase";
    case CURLE_PEER_FAILED_VERIFICATION:
      return "ca_file must have the authority that signed the server's certificate, and the certificate must have the "
             "host by which we connect";
    case CURLE_SSL_CONNECT_ERROR: return "if this port has no TLS, write " + site_.without_tls;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return "this port does not speak HTTP: name etcd's client port, or that of the bucket's endpoint";
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return "if this port has TLS, write " + site_.with_tls;
    default: return {};
  }
}

inline Error Http::failed(CURLcode code) const {
  if (errno_of_socket_ != 0)
    return broken(std::string("no socket can be opened: ") + std::generic_category().message(errno_of_socket_) +
                  (errno_of_socket_ == EMFILE ? "; raise ulimit -n" : ""));
  if (code == CURLE_WRITE_ERROR)
    return broken("an answer of more than " + std::to_string(most_bytes / 1024) +
                  " KiB, far more than a record has; remove what somebody else wrote to the election's keys");
  if (code == CURLE_COULDNT_CONNECT && !opened_) return broken("it has closed the connection");
  auto error = broken(error_[0] != '\0' ? error_ : curl_easy_strerror(code));
  if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CRL_BADFILE)
    error.fault = Fault::misconfigured;
  if (const auto remedy = opened_ ? remedy_of(code) : ""; !remedy.empty()) error.message += " (" + remedy + ")";
  return error;
}

}  // namespace tenure::web
