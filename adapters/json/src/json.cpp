// SPDX-License-Identifier: Apache-2.0
#include <tenure/json.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/security.hpp>

#include <algorithm>
#include <utility>

#include "document.hpp"
#include "value.hpp"

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

Opened opened(const Document& document, Opener open) {
  try {
    auto out = open(document.opening);
    if (!out.backend) refuse("/store", "could not be opened: the opener returned no backend and no reason");
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
  auto read = content_of(path);
  if (auto* refusal = std::get_if<Refusal>(&read))
    refuse("", "in " + printable(path.string()) + " " + refusal->message);
  return std::get<std::string>(std::move(read));
}

// ---- apply ----

std::vector<Finding> differences(const Document& now, const Document& next) {
  std::vector<Finding> out;
  const auto note = [&](const char* pointer, bool differs) {
    if (differs) out.push_back({pointer, "cannot be changed while a manager runs: it needs a restart"});
  };
  const auto &a = now.opening, &b = next.opening;
  note(next.store_is_object ? "/store/url" : "/store", a.url != b.url);
  note("/store/user", a.user != b.user);
  note("/store/password", a.password != b.password);
  note("/store/properties", a.properties != b.properties);
  note("/election", a.election != b.election);
  note("/candidate/name", a.candidate.name != b.candidate.name);
  note("/candidate/address", a.candidate.address != b.candidate.address);
  return out;
}

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
  auto document = decode(text);
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
  const auto next = decode(text);
  const auto& now = *running.document;
  auto out = differences(now, next);
  const auto timing = with_kept(running.timing, checked_timing(next, now.presets), now.kept, out);
  try {
    manager.retime(timing);
  } catch (const std::invalid_argument& e) {
    refuse("/timing", std::string("does not fit the fields that this store keeps: ") + e.what());
  }
  running.timing = timing;
  return out;
}

std::vector<Finding> apply_file(const std::filesystem::path& path, Configured& running, LeaderManager& manager) {
  return apply(content(path), running, manager);
}

}  // namespace tenure
