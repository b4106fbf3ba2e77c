// SPDX-License-Identifier: Apache-2.0
// An election configured by a JSON document. tenure.schema.json beside this library describes it for editors.
//
//   {
//     "store": "redis://127.0.0.1:6379",           what tenure::open() takes; swapping the store is this string
//     "election": "reports",                       what is contended for
//     "candidate": { "name": "${HOSTNAME}", "address": "10.0.0.7:80" },      may be missing
//     "timing": "balanced"                         the store's own fast, balanced (if missing) or steady
//   }
//
// With more to say:
//   "store": { "url": "...", "user": "...", "password": {"file": "/run/secrets/redis"}, "properties": {"name": "value"}
//   } "timing": { "preset": "fast", "term": "8s", "renew": "2s", "retry": "100ms", "margin": "400ms", "call": "500ms",
//               "drain": "8s", "clock_rate_error_ppm": 500 }                 what is given replaces the preset's
//
// "${NAME}" as the whole of a text (not within "timing") stands for that environment variable; {"file": path} as the
// url, the user, the password or a property's value for what the file says, without one newline at its end. Durations
// are whole numbers with ns, us, ms or s.
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

inline constexpr std::size_t max_document_bytes = 65'536;  ///< Of a document, and of a file that one names.

/// Something that a document says: where (RFC 6901), what is wrong with it and what would be right. No secrets.
struct Finding {
  std::string pointer{};  ///< "/timing/term"; empty: the document as a whole.
  std::string message{};
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// All that is wrong with a document, at once; what() lists it. Only what the store itself must judge (its URL, its
/// properties, whether it can keep the timing) is judged after everything else is right.
class TENURE_JSON_EXPORT InvalidDocument : public std::invalid_argument {
 public:
  explicit InvalidDocument(std::vector<Finding> findings);
  const std::vector<Finding>& findings() const noexcept { return *findings_; }

 private:
  std::shared_ptr<const std::vector<Finding>> findings_;
};

/// What opens a store: tenure::open of <tenure/stores.hpp>, or one store's open_url.
using Opener = Opened (*)(const Opening&);

struct Document;

/// Ready for a LeaderManager.
struct Configured {
  std::shared_ptr<Backend> backend{};
  Timing timing{};
  std::shared_ptr<const Document> document{};  ///< For apply(). Holds secrets, tells none.
};

/// Throws InvalidDocument; and what `open` throws beside std::invalid_argument.
TENURE_JSON_EXPORT Configured from_json(std::string_view text, Opener open, Log log = {});
TENURE_JSON_EXPORT Configured from_json_file(const std::filesystem::path& path, Opener open, Log log = {});

/// Applies a new document to a manager that runs by an older one, without an end to its tenure: the timing changes, its
/// term and margin with the next tenure (LeaderManager::retime). Returns what else the document changes, which takes a
/// restart: the store, the election, the candidate, and the fields of the timing that the store keeps (Opened::kept).
/// `running` tells what was asked for; should the store refuse it after all, an error() says so. Throws
/// InvalidDocument, and has then changed nothing. REQUIRES: one call at a time.
TENURE_JSON_EXPORT std::vector<Finding> apply(std::string_view text, Configured& running, LeaderManager& manager);
TENURE_JSON_EXPORT std::vector<Finding> apply_file(const std::filesystem::path& path, Configured& running,
                                                   LeaderManager& manager);

}  // namespace tenure
