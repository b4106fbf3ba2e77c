// SPDX-License-Identifier: Apache-2.0
// What the dialects have in common, and which one it is.
#include "dialect.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::object {

std::unique_ptr<Dialect> dialect_of(const Options& options) {
  if (options.service == Service::gcs) return gcs(options);
  if (options.service == Service::azure) return azure(options);
  return s3(options);
}

web::Site Dialect::site() const {
  const auto server = server_of(options_);
  const bool azure = options_.service == Service::azure;
  const std::string kind = azure ? "azure " : options_.service == Service::gcs ? "gcs " : "s3 ";
  return {.base = (server.tls ? "https://" : "http://") + server.host,
          .name = kind + server.host + (azure ? ", container " : ", bucket ") + options_.bucket,
          .tls = server.tls,
          .ca_file = options_.ca_file,
          .without_tls = "?endpoint=http://",
          .with_tls = "?endpoint=https://"};
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
