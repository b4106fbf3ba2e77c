// SPDX-License-Identifier: Apache-2.0
// Makes the documents about many elections, and reads the query of a request.
#include "group_look.hpp"

#include <algorithm>
#include <stdexcept>

#include <tenure/kit/names.hpp>
#include <tenure/kit/text.hpp>

#include "json.hpp"

namespace tenure::http {
namespace {

/// As parameter() reads it, whatever the text has.
std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = lower(c) >= 'a' && lower(c) <= 'z';
    out += plain || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ? std::string(1, c) : percent(c);
  }
  return out;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? number<unsigned char>(text.substr(i + 1, 2), 16) : std::nullopt;
    if (!byte) throw std::invalid_argument("after a '%' two hexadecimal digits are expected; '%' itself is %25");
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

/// Their number, and the first ones.
void add_unled(Json& out, const std::vector<std::string>& unled) {
  out["unled"] = unled.size();
  auto& first = out["leaderless"] = Json::array();
  for (std::size_t i = 0; i < std::min(unled.size(), leads_at_once); ++i) first.push_back(unled[i]);
}

/// `last`: of this page, if another one follows.
void add_next(Json& out, const std::string* last) {
  out["leads_at_once"] = leads_at_once;
  out["next"] = last ? Json("status?after=" + encoded(*last)) : Json(nullptr);
}

}  // namespace

std::optional<std::string> parameter(std::string_view query, std::string_view name) {
  std::optional<std::string> found;
  while (!query.empty()) {
    const auto part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    const auto equals = std::min(part.find('='), part.size());
    if (part.substr(0, equals) != name) continue;
    if (found) throw std::invalid_argument("the parameter " + std::string(name) + " stands twice; give it once");
    found = decoded(part.substr(std::min(part.size(), equals + 1)));
  }
  return found;
}

std::string group_status_document(const Elections& elections, const SiteOptions& options, const std::string& after) {
  const auto all = elections.metrics();
  const auto& m = all.session;
  const auto led = elections.led();
  auto out = document();
  out.update({{"group", all.group},
              {"self", json(options.self)},
              {"exclusive", elections.exclusive()},
              {"joined", all.joined},
              {"led", all.led},
              {"stalled", all.stalled},
              {"session",
               {{"remaining_ms", ms(m.remaining)},
                {"rides_out_ms", ms(m.rides_out)},
                {"since_granted_ms", json(m.since_granted)}}},
              {"health", health(m, options.stuck_after)},
              {"counts", counts(m)}});
  add_unled(out, elections.unled());
  const auto comes_before = [](const std::string& name, const auto& lead) { return name < lead.first; };
  auto lead = std::upper_bound(led.begin(), led.end(), after, comes_before);
  auto& leads = out["leads"] = Json::array();
  for (; lead != led.end() && leads.size() < leads_at_once; ++lead)
    leads.push_back({{"election", lead->first}, {"token", json(std::optional(lead->second))}});
  add_next(out, lead == led.end() ? nullptr : &std::prev(lead)->first);
  return text(out);
}

std::string observed_document(const GroupObserver& observer, const SiteOptions& options, const std::string& after) {
  const auto all = observer.all();
  auto out = document();
  out["group"] = observer.group();
  out["self"] = json(options.self);
  if (const auto error = observer.last_error()) out["error"] = json(*error);
  std::vector<std::string> unled;
  for (const auto& one : all)
    if (!dialect::leader_in(one.sight)) unled.push_back(one.election);
  add_unled(out, unled);
  const auto comes_before = [](const std::string& name, const auto& one) { return name < one.election; };
  auto one = std::upper_bound(all.begin(), all.end(), after, comes_before);
  auto& elections = out["elections"] = Json::array();
  for (; one != all.end() && elections.size() < leads_at_once; ++one) {
    Json row{{"election", one->election}};
    dialect::add(row, one->sight);
    row["renewed"] = one->renewed;
    elections.push_back(std::move(row));
  }
  add_next(out, one == all.end() ? nullptr : &std::prev(one)->election);
  return text(out);
}

std::string election_in(const Request& request) {
  const auto election = parameter(request.query, "election");
  if (!election) throw std::invalid_argument("name the election: " + std::string(request.path) + "?election=NAME");
  check_election(*election);
  return *election;
}

std::string group_lacks(const GroupMetrics& metrics, Clock::Duration stuck_after) {
  auto ails = ailment(metrics.session, stuck_after);
  if (!ails.empty()) return ails;
  if (metrics.session.remaining > Clock::Duration::zero()) return {};
  return "it has no session: it joined nothing, the store has not granted one, or it takes part no more";
}

}  // namespace tenure::http
