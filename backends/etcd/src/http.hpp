// SPDX-License-Identifier: Apache-2.0
// One connection to one server, by which HTTP requests go one after the other.
#pragma once
#include <curl/curl.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tenure/clock.hpp>
#include <tenure/etcd.hpp>
#include <tenure/kit/c_handle.hpp>
#include <tenure/result.hpp>

namespace tenure::etcd {

/// A POST of JSON.
struct Request {
  std::string path, body;
  std::string token{};  ///< The value of the header Authorization. It may be empty.
};

struct Answer {
  long status{};
  std::string body{};
};

/// libcurl of its own accord connects anew, and then sends again what had no answer. Here it never does: a write is
/// sent once. What blocks ends when somebody shuts descriptor() down. REQUIRES: one thread at a time.
class Http {
 public:
  /// Told of each socket that is opened. If it returns false, the socket is not used.
  using Opened = std::function<bool(int descriptor)>;

  /// `name`: "etcd 127.0.0.1:2379", for messages.
  Http(const Options& options, const Address& to, std::string name);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Makes the connection and asks the first question, all within `patience`.
  Result<Answer> connect(const Request& request, Clock::Duration patience, Opened opened);

  Result<Answer> ask(const Request& request);

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

  void set_up(const Options& options);
  std::optional<Error> begin(const Request& request);
  template <class Value>
  void set(CURLoption option, Value value);
  std::optional<Error> advance();
  Result<Answer> finish();
  Error failed(CURLcode code) const;

  const std::string base_, name_;
  CHandle<CURLM, curl_multi_cleanup> multi_;
  CHandle<CURL, curl_easy_cleanup> easy_;
  CHandle<curl_slist, curl_slist_free_all> headers_;
  Opened opened_;       ///< Set while a connection may be made.
  int descriptor_{-1};  ///< libcurl closes it.
  int errno_of_socket_{};
  bool asking_{};  ///< `easy_` is in `multi_`.
  bool done_{};
  bool lines_{};            ///< The answer comes in lines.
  std::size_t received_{};  ///< Bytes of this answer, or of a line that has no end yet.
  std::string body_;
  std::size_t taken_{};  ///< How many of its bytes were returned as lines.
  char error_[CURL_ERROR_SIZE]{};
};

}  // namespace tenure::etcd
