// SPDX-License-Identifier: Apache-2.0
#include <tenure/json_group.hpp>
#include <tenure/kit/files.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/security.hpp>

#include <algorithm>
#include <iterator>
#include <set>
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

/// Stores tell no secrets; this is for one that forgets to take care. Short ones stand in words by chance.
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

// ---- apply ----

/// What was told of the two documents, and needs a restart if it differs.
class Differences {
 public:
  explicit Differences(std::string what_runs) : what_runs_(std::move(what_runs)) {}

  void note(const char* pointer, bool differs) {
    if (differs) found.push_back({pointer, "cannot be changed while " + what_runs_ + ": it needs a restart"});
  }

  void of_openings(const Document& now, const Document& next, const char* election) {
    const auto &a = now.opening, &b = next.opening;
    note(next.store_is_object ? "/store/url" : "/store", a.url != b.url);
    note("/store/user", a.user != b.user);
    note("/store/password", a.password != b.password);
    note("/store/properties", a.properties != b.properties);
    note(election, a.election != b.election);
    note("/candidate/name", a.candidate.name != b.candidate.name);
    note("/candidate/address", a.candidate.address != b.candidate.address);
  }

  std::vector<Finding> found;

 private:
  std::string what_runs_;
};

/// Fields that the store cannot change keep their value, and are added to `out`.
Timing with_kept(const Timing& now, Timing next, const std::vector<std::string>& kept, std::vector<Finding>& out) {
  const auto keep = [&](const std::string& name, const std::string& pointer, auto Timing::*member) {
    if (next.*member == now.*member || std::find(kept.begin(), kept.end(), name) == kept.end()) return;
    next.*member = now.*member;
    out.push_back({pointer, "cannot be changed while a manager runs on this store: it needs a restart"});
  };
  for (const auto& [name, member] : duration_fields) keep(std::string(name), "/timing/" + std::string(name), member);
  keep("clock_rate_error", "/timing/clock_rate_error_ppm", &Timing::clock_rate_error);
  return next;
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
  document.presets = store.presets;
  document.kept = std::move(store.kept);
  return {.backend = std::move(store.backend),
          .timing = timing,
          .document = std::make_shared<const Document>(std::move(document))};
}

Configured from_json_file(const std::filesystem::path& path, Opener open, Log log) {
  return from_json(content(path), open, std::move(log));
}

std::vector<Finding> apply(std::string_view text, Configured& running, LeaderManager& manager) {
  if (!running.document)
    throw std::invalid_argument(
        "apply: running.document is null; hand in the Configured that from_json() or from_json_file() returned");
  const auto next = decode(text, Form::one);
  const auto& now = *running.document;
  Differences differences("a manager runs");
  differences.of_openings(now, next, "/election");
  const auto timing = with_kept(running.timing, checked_timing(next, now.presets), now.kept, differences.found);
  try {
    manager.retime(timing);
  } catch (const std::invalid_argument& e) {
    refuse("/timing", std::string("does not fit the fields that this store keeps: ") + e.what());
  }
  running.timing = timing;
  return std::move(differences.found);
}

std::vector<Finding> apply_file(const std::filesystem::path& path, Configured& running, LeaderManager& manager) {
  return apply(content(path), running, manager);
}

// ---- many elections ----

ConfiguredGroup group_from_json(std::string_view text, GroupOpener open, Log log) {
  auto document = decode(text, Form::many);
  document.opening.log = std::move(log);
  auto group = opened(document, open);
  const auto timing = checked_timing(document, group.presets);
  if (const auto error = group.store->accepts(timing)) refuse("/timing", without(error->message, document.secrets));
  document.presets = group.presets;
  ConfiguredGroup out{.store = std::move(group.store),
                      .candidate = document.opening.candidate,
                      .timing = timing,
                      .spread = document.spread,
                      .hook_threads = document.hook_threads,
                      .elections = document.elections};
  out.document = std::make_shared<const Document>(std::move(document));
  return out;
}

ConfiguredGroup group_from_json_file(const std::filesystem::path& path, GroupOpener open, Log log) {
  return group_from_json(content(path), open, std::move(log));
}

std::vector<Finding> apply(std::string_view text, ConfiguredGroup& running, Elections& elections) {
  if (!running.document)
    throw std::invalid_argument(
        "apply: running.document is null; hand in the ConfiguredGroup that group_from_json() or "
        "group_from_json_file() returned");
  auto next = decode(text, Form::many);
  const auto& now = *running.document;
  Differences differences("the elections run");
  differences.of_openings(now, next, "/group");
  differences.note("/timing", checked_timing(next, now.presets) != running.timing);
  differences.note("/spread", next.spread != running.spread);
  differences.note("/hook_threads", next.hook_threads != running.hook_threads);
  const std::set<std::string> before(running.elections.begin(), running.elections.end());
  const std::set<std::string> after(next.elections.begin(), next.elections.end());
  for (const auto& election : before)
    if (!after.contains(election)) elections.leave(election);
  std::vector<std::string> added;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
  elections.join(added);
  running.elections = std::move(next.elections);
  return std::move(differences.found);
}

std::vector<Finding> apply_file(const std::filesystem::path& path, ConfiguredGroup& running, Elections& elections) {
  return apply(content(path), running, elections);
}

}  // namespace tenure
