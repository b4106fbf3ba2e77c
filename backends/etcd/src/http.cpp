// SPDX-License-Identifier: Apache-2.0
// What is etcd's own about its HTTP: headers, remedies, and answers that have no end.
#include "http.hpp"

#include <utility>

#include "options.hpp"

namespace tenure::etcd {
namespace {

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

web::Request post(std::string path, std::string body, const std::string& token) {
  web::Request out{.method = "POST", .path = std::move(path), .body = std::move(body)};
  // A member without a leader answers so at once, and does not wait for one.
  out.headers = {"Content-Type: application/json", "Expect:", "Grpc-Metadata-hasleader: true"};
  if (!token.empty()) out.headers.push_back("Authorization: " + token);
  return out;
}

Http::Http(const Options& options, const Address& to, std::string name)
    : web::Http({.base = (options.tls ? "https://" : "http://") + to_string(to),
                 .name = std::move(name),
                 .tls = options.tls,
                 .ca_file = options.ca_file,
                 .cert_file = options.cert_file,
                 .key_file = options.key_file,
                 .remedy_of = remedy_of}) {}

std::optional<Error> Http::begin_lines(const web::Request& request) {
  auto error = begin(request);
  lines_ = true;
  taken_ = 0;
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

}  // namespace tenure::etcd
