// SPDX-License-Identifier: Apache-2.0
// A bucket in memory, for FakeServer: it keeps conditions, or lies as a test tells it.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_server.hpp"
#include "messages.hpp"
#include "web/http.hpp"

namespace tenure::object::test {

using tenure::test::FakeServer;
using Answer = FakeServer::Answer;

inline std::string http(const std::string& status, const std::string& body = {}, const std::string& headers = {}) {
  return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline std::string failure(const std::string& status, const std::string& code, const std::string& message = "no",
                           const std::string& headers = {}) {
  return http(status, "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>", headers);
}
inline const std::string no_such_key = failure("404 Not Found", "NoSuchKey");
inline const std::string precondition = failure("412 Precondition Failed", "PreconditionFailed");

/// The value of a request's header, or of an answer's. Empty: there is none.
inline std::string header(const std::string& text, const std::string& name) {
  const auto at = text.find("\r\n" + name + ": ");
  if (at == text.npos) return {};
  const auto begin = at + name.size() + 4;
  return text.substr(begin, text.find("\r\n", begin) - begin);
}

/// As libcurl hands it on.
inline web::Answer answer(const std::string& bytes) {
  const auto end = bytes.find("\r\n\r\n");
  return {.status = std::stol(bytes.substr(9)), .body = bytes.substr(end + 4), .head = bytes.substr(0, end + 4)};
}

class FakeS3 {
 public:
  std::string quote{"\""};  ///< Round each ETag.
  bool ignores_match{}, ignores_none_match{}, same_etag{};
  std::function<std::optional<Answer>(const std::string& request)> first{};  ///< Answers in its place.

  Answer operator()(const std::string& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (first)
      if (auto answer = first(request)) return *std::move(answer);
    const auto path = request.substr(4, request.find(' ', 4) - 4);
    const auto found = objects_.find(path);
    const bool is = found != objects_.end();
    if (path.find('?') != path.npos) return {failure("404 Not Found", "NoSuchLifecycleConfiguration")};
    if (request.starts_with("GET "))
      return {is ? http("200 OK", found->second.body, etag(found->second)) : no_such_key};
    const auto match = header(request, "If-Match");
    if (!match.empty() && !is) return {no_such_key};
    if (!match.empty() && match != etag_of(found->second) && !ignores_match) return {precondition};
    if (!header(request, "If-None-Match").empty() && is && !ignores_none_match) return {precondition};
    auto& object = objects_[path];
    object = {request.substr(request.find("\r\n\r\n") + 4), ++writes_};
    return {http("200 OK", {}, etag(object))};
  }

  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  struct Object {
    std::string body;
    int write{};
  };
  std::string etag_of(const Object& object) const {
    return quote + "e" + std::to_string(same_etag ? 0 : object.write) + quote;
  }
  std::string etag(const Object& object) const { return "ETag: " + etag_of(object) + "\r\n"; }

  std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::vector<std::string> requests_;
  int writes_{};
};

/// A server of it.
struct FakeBucket {
  FakeS3 s3{};
  FakeServer server{[this](const std::string& request) { return s3(request); }};

  std::string url(const std::string& secret = "secret") const {
    return "s3://key:" + secret + "@bucket/jobs?endpoint=http://" + server.address();
  }
};

}  // namespace tenure::object::test
