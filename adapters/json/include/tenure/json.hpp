// SPDX-License-Identifier: Apache-2.0
// An election configured by a JSON document. tenure.schema.json beside this library describes it for editors.
// <tenure/json_group.hpp> is the same for many elections.
//
//   {
//     "store": "redis://127.0.0.1:6379",           a URL as tenure::open() takes it: another URL is another store
//     "election": "reports",                       candidates with the same name contend with each other
//     "candidate": { "name": "${HOSTNAME}", "address": "10.0.0.7:80" },      may be missing
//     "timing": "balanced"                         the store's own fast, balanced (if missing) or steady
//   }
//
// The store and the timing have longer forms. A number that is given replaces the preset's:
//
//   "store": { "url": "...", "user": "...", "password": {"file": "/run/secrets/redis"},
//              "properties": {"name": "value"} }
//   "timing": { "preset": "fast", "term": "8s", "renew": "2s", "retry": "100ms", "margin": "400ms", "call": "500ms",
//               "drain": "8s", "clock_rate_error_ppm": 500 }
//
// Outside of "timing", a text that is "${NAME}" as a whole stands for that environment variable. In place of the URL,
// the user, the password or a property's value, {"file": path} stands for the file's text, without one newline at its
// end. The file of "password" is read again at each login, and those of the other places once. So a password that may
// change stands there, and not in the URL or in properties. Durations are whole numbers with ns, us, ms or s.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/json_export.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>

namespace tenure {

inline constexpr std::size_t max_document_bytes = 1'048'576;  ///< Of a document, and of a file that it names.

/// One fault of a document: where it is, what is wrong, and what would be right. It holds no secret.
struct Finding {
  std::string pointer{};  ///< As RFC 6901 has it: "/timing/term". Empty: the document as a whole.
  std::string message{};
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Tells all faults of a document at once; what() lists them. Only the store can judge its URL, its properties, and
/// whether it can keep the timing. It is asked once everything else is right. Any thread may read it.
class TENURE_JSON_EXPORT InvalidDocument : public std::invalid_argument {
 public:
  explicit InvalidDocument(std::vector<Finding> findings);
  const std::vector<Finding>& findings() const noexcept { return *findings_; }  ///< At least one.

 private:
  std::shared_ptr<const std::vector<Finding>> findings_;
};

/// Opens a store: tenure::open of <tenure/stores.hpp>, or open_url of one store.
using Opener = Opened (*)(const Opening&);

/// What a LeaderManager needs.
struct Configured {
  std::shared_ptr<Backend> backend{};
  Timing timing{};
};

/// Throws InvalidDocument, also in place of a std::invalid_argument of `open`. What else `open` throws, it lets pass.
TENURE_JSON_EXPORT Configured from_json(std::string_view text, Opener open, Log log = {});
/// The same of a file. What cannot be read is a Finding too.
TENURE_JSON_EXPORT Configured from_json_file(const std::filesystem::path& path, Opener open, Log log = {});

}  // namespace tenure
