// SPDX-License-Identifier: Apache-2.0
// What the dialects have in common, and which one it is.
#include "dialect.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "azure.hpp"
#include "gcs.hpp"
#include "s3.hpp"

namespace tenure::object {
namespace {

std::string remedy_of(CURLcode code) {
  switch (code) {
    case CURLE_SSL_CACERT_BADFILE: return "ca_file must name a readable file of certificates in PEM";
    case CURLE_PEER_FAILED_VERIFICATION:
      return "ca_file must have the authority that signed the server's certificate, and the certificate must have the "
             "host by which we connect";
    case CURLE_SSL_CONNECT_ERROR: return "if this port has no TLS, write ?endpoint=http://";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY: return "this port does not speak HTTP: check endpoint";
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return "if this port has TLS, write ?endpoint=https://";
    default: return {};
  }
}

}  // namespace

std::unique_ptr<Dialect> dialect_of(const Options& options) {
  if (options.service == Service::gcs) return std::make_unique<Gcs>(options);
  if (options.service == Service::azure) return std::make_unique<Azure>(options);
  return std::make_unique<S3>(options);
}

web::Site site_at(const Server& server, std::string name, const std::string& ca_file) {
  return {.base = (server.tls ? "https://" : "http://") + server.host,
          .name = std::move(name),
          .tls = server.tls,
          .ca_file = ca_file,
          .remedy_of = remedy_of};
}

std::string header_of(const web::Answer& answer, std::string_view name) {
  std::string_view head = answer.head;
  while (!head.empty()) {
    const auto end = std::min(head.find('\n'), head.size());
    const auto line = head.substr(0, end), value = line.substr(std::min(name.size() + 1, line.size()));
    head.remove_prefix(std::min(end + 1, head.size()));
    if (line.size() <= name.size() || line[name.size()] != ':' || lower(line.substr(0, name.size())) != lower(name))
      continue;
    const auto first = value.find_first_not_of(" \t\r"), last = value.find_last_not_of(" \t\r");
    return first == value.npos ? std::string() : std::string(value.substr(first, last - first + 1));
  }
  return {};
}

std::optional<std::string> etag_of(const web::Answer& answer) {
  auto out = header_of(answer, "ETag");
  const bool fit = out.size() <= 1024 && !out.starts_with("W/") &&
                   std::all_of(out.begin(), out.end(), [](char c) { return c > ' ' && c <= '~'; });
  return out.empty() || out == "*" || !fit ? std::nullopt : std::optional(std::move(out));
}

Error error_told(const std::string& name, const std::string& provider, const std::string& code,
                 const web::Answer& answer, const Redactor& redacted, std::span<const Meaning> meanings) {
  const auto status = name + ": HTTP status " + std::to_string(answer.status);
  if (code.empty())
    return {Fault::unreachable,
            status + ", and no answer of " + provider + ": " + printable(redacted(answer.body), 200)};
  const auto said =
      status + ", " + printable(redacted(code), 80) + ": " + printable(redacted(element(answer.body, "Message")), 300);
  for (const auto& meaning : meanings)
    if (meaning.code == code) return {meaning.fault, said + " (" + std::string(meaning.remedy) + ")"};
  return {answer.status == 403 ? Fault::forbidden : Fault::unreachable, said};
}

}  // namespace tenure::object
