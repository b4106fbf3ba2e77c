// SPDX-License-Identifier: Apache-2.0
// What a member of a cluster answers, for FakeServer.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "fake_server.hpp"
#include "messages.hpp"

namespace tenure::etcd::test {

inline std::string http(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

inline std::string member_of(const std::string& cluster, const std::string& rest = R"("leader":"7")") {
  return http(R"({"header":{"cluster_id":")" + cluster + R"(","revision":"1"},"version":"3.4.23",)" + rest + "}");
}
inline const std::string token = http(R"({"header":{"revision":"1"},"token":")" + tenure::test::canary + "\"}");

using Answers = std::function<tenure::test::FakeServer::Answer(const std::string& request)>;

/// Lets us in, and then answers as `answer` says.
inline Answers once_inside(Answers answer, const std::string& status = member_of("1")) {
  return [answer = std::move(answer), status](const std::string& request) {
    if (request.starts_with("POST /v3/maintenance/status ")) return tenure::test::FakeServer::Answer{status};
    if (request.starts_with("POST /v3/auth/authenticate ")) return tenure::test::FakeServer::Answer{token};
    return answer(request);
  };
}

}  // namespace tenure::etcd::test
