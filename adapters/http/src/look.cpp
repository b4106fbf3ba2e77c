// SPDX-License-Identifier: Apache-2.0
// Makes the documents about one election, and finds what changed between two looks.
#include "look.hpp"

#include <algorithm>

#include <tenure/version.hpp>

#include "json.hpp"

namespace tenure::http {
namespace {

constexpr int patience_with_followers = 12;

std::string_view name_of(Change::What what) {
  switch (what) {
    case Change::What::elected: return "elected";
    case Change::What::ousted: return "ousted";
    case Change::What::incumbent: return "incumbent";
    case Change::What::vacant: return "vacant";
    case Change::What::ended: return "ended";
  }
  return "unknown";
}

Json json_of(const Change& change) {
  Json out{{"id", change.id}, {"what", name_of(change.what)}, {"unix_ms", change.unix_ms}};
  if (change.token) out["token"] = json(change.token);
  if (change.reason) out["reason"] = underscored(to_string(*change.reason));
  if (change.what == Change::What::incumbent) {
    out["name"] = change.name;
    out["address"] = change.address;
  }
  return out;
}

/// `state` and `leader`, or the `error` for which it is not known; with a history also since when, as far as we saw it
/// begin.
void add_leader(Json& out, const Look& look, const SiteOptions& options, const std::deque<Change>* history) {
  const auto& m = look.metrics;
  auto leads = look.incumbent;
  if (m.is_leader)
    leads = Incumbent{.name = options.self.name,
                      .address = options.self.address,
                      .token = m.token.value_or(Token{}),
                      .remaining = m.remaining,
                      .version = std::string(tenure::version())};
  out["state"] = leads ? "led" : look.error ? "unknown" : "vacant";
  if (!leads && look.error) out["error"] = json(*look.error);
  auto& leader = out["leader"] = leads ? json(*leads) : Json(nullptr);
  if (!leads) return;
  leader["self"] = m.is_leader;
  if (!history) return;
  const auto begin = std::find_if(history->rbegin(), history->rend(), [&](const Change& c) {
    return c.token == leads->token && (c.what == Change::What::elected || c.what == Change::What::incumbent);
  });
  leader["since_unix_ms"] = begin == history->rend() ? Json(nullptr) : Json(begin->unix_ms);
}

}  // namespace

std::vector<Change> changes_between(const Look& before, const Look& now) {
  const auto& was = before.metrics;
  const auto& is = now.metrics;
  std::vector<Change> out;
  std::vector<Reason> ends;
  for (const auto& [reason, count] : is.ousted) {
    const auto known = was.ousted.find(reason);
    ends.insert(ends.end(), count - (known == was.ousted.end() ? 0 : known->second), reason);
  }
  auto ousted = ends.begin();
  auto begun = is.elected - was.elected;
  auto tenures = was.elected;
  for (const auto& [reason, count] : was.ousted) tenures -= count;
  bool leading = tenures > 0;
  while (begun > 0 || ousted != ends.end()) {
    if (leading && ousted == ends.end()) break;  // It cannot be.
    if (leading)
      out.push_back({.what = Change::What::ousted, .reason = *ousted++});
    else if (begun-- > 0)
      out.push_back(
          {.what = Change::What::elected, .token = begun == 0 && ends.end() - ousted == 0 ? is.token : std::nullopt});
    else
      break;
    leading = !leading;
  }
  const auto token = [](const Look& look) {
    return look.incumbent ? std::optional(look.incumbent->token) : std::nullopt;
  };
  if (now.incumbent && token(before) != token(now)) {
    out.push_back({.what = Change::What::incumbent,
                   .token = now.incumbent->token,
                   .name = now.incumbent->name,
                   .address = now.incumbent->address});
  } else if (before.incumbent && !now.incumbent && !is.is_leader) {
    out.push_back({.what = Change::What::vacant});
  }
  if (now.ended && !before.ended) out.push_back({.what = Change::What::ended});
  return out;
}

std::string ailment(const Metrics& m, Clock::Duration stuck_after) {
  if (m.overdue > stuck_after)
    return "our threads have not turned for " + std::to_string(ms(m.overdue)) +
           " ms: they starve, or a log hook or a stop callback blocks";
  if (m.overrun > stuck_after)
    return "ousting() has outlasted its time by " + std::to_string(ms(m.overrun)) +
           " ms: the work may run without a lease";
  // Who does not lead holds up nobody by that, but takes no part before the call returns.
  if (m.wedged / (m.is_leader ? 1 : patience_with_followers) > stuck_after)
    return "a call of the store, or eligible(), has outlasted its limit by " + std::to_string(ms(m.wedged)) +
           " ms: nothing is renewed, and nothing claimed";
  return {};
}

std::string status_document(const Look& look, const SiteOptions& options, const std::deque<Change>& history,
                            bool with_history) {
  const auto& m = look.metrics;
  auto out = document();
  out["election"] = m.election;
  auto& self = out["self"] = json(options.self);
  self["state"] = look.ended ? "ended" : m.is_leader ? "leading" : "following";
  add_leader(out, look, options, &history);
  out["rides_out_ms"] = ms(m.rides_out);
  out["since_granted_ms"] = json(m.since_granted);
  out["health"] = health(m, options.stuck_after);
  out["counts"] = counts(m);
  if (with_history) {
    auto& list = out["history"] = Json::array();
    for (const auto& change : history) list.push_back(json_of(change));
  }
  return text(out);
}

std::string leader_document(const Look& look, const SiteOptions& options) {
  auto out = document();
  out["election"] = look.metrics.election;
  out["leading"] = look.metrics.is_leader;
  add_leader(out, look, options, nullptr);
  return text(out);
}

std::string change_document(const Change& change) { return text(json_of(change)); }

}  // namespace tenure::http
