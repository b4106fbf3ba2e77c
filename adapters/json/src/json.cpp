// SPDX-License-Identifier: Apache-2.0
// Opens the store that a document names, and checks the timing.
#include <tenure/json_group.hpp>
#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/security.hpp>

#include <algorithm>
#include <utility>

#include "document.hpp"

namespace tenure {
namespace {

std::string listed(const std::vector<Finding>& findings) {
  std::string out = "configuration: ";
  for (const auto& [pointer, message] : findings)
    out += (&pointer == &findings.front().pointer ? "" : "; ") + (pointer.empty() ? "the document" : pointer) + " " +
           message;
  return out;
}

[[noreturn]] void refuse(std::string pointer, std::string message) {
  throw InvalidDocument({{std::move(pointer), std::move(message)}});
}

/// No store puts a secret into a message; this is for one that forgets. Short secrets stand in words by chance.
std::string without(const std::string& message, std::vector<std::string> secrets) {
  std::erase_if(secrets, [](const auto& secret) { return secret.size() < 4; });
  return Redactor(std::move(secrets))(message);
}

bool is_there(const Opened& opened) { return opened.backend != nullptr; }
bool is_there(const OpenedGroup& opened) { return opened.store != nullptr; }

template <class Result>
Result opened(const Document& document, Result (*open)(const Opening&)) {
  try {
    auto out = open(document.opening);
    if (!is_there(out)) refuse("/store", "could not be opened: the opener returned no store and no reason");
    return out;
  } catch (const InvalidDocument&) {
    throw;
  } catch (const std::invalid_argument& e) {
    refuse("/store", without(e.what(), document.secrets));
  }
}

Timing checked_timing(const Document& document, const Presets& presets) {
  auto timing = document.timing.of(presets);
  try {
    timing.validate();
  } catch (const std::invalid_argument& e) {
    refuse("/timing", e.what());
  }
  return timing;
}

std::string content(const std::filesystem::path& path) {
  auto read = content_of(path, max_document_bytes);
  if (!read) refuse("", "in " + printable(path.string()) + " " + read.error().message);
  return *std::move(read);
}

}  // namespace

InvalidDocument::InvalidDocument(std::vector<Finding> findings)
    : std::invalid_argument(listed(findings)),
      findings_(std::make_shared<const std::vector<Finding>>(std::move(findings))) {}

Configured from_json(std::string_view text, Opener open, Log log) {
  auto document = decode(text, Form::one);
  document.opening.log = std::move(log);
  auto store = opened(document, open);
  const auto timing = checked_timing(document, store.presets);
  if (const auto error = store.backend->accepts(timing)) refuse("/timing", without(error->message, document.secrets));
  return {.backend = std::move(store.backend), .timing = timing};
}

Configured from_json_file(const std::filesystem::path& path, Opener open, Log log) {
  return from_json(content(path), open, std::move(log));
}

// ---- many elections ----

ConfiguredGroup group_from_json(std::string_view text, GroupOpener open, Log log) {
  auto document = decode(text, Form::many);
  document.opening.log = std::move(log);
  auto group = opened(document, open);
  const auto timing = checked_timing(document, group.presets);
  if (const auto error = group.store->accepts(timing)) refuse("/timing", without(error->message, document.secrets));
  return {.store = std::move(group.store),
          .candidate = std::move(document.opening.candidate),
          .timing = timing,
          .spread = document.spread,
          .hook_threads = document.hook_threads,
          .elections = std::move(document.elections)};
}

ConfiguredGroup group_from_json_file(const std::filesystem::path& path, GroupOpener open, Log log) {
  return group_from_json(content(path), open, std::move(log));
}

}  // namespace tenure
