// SPDX-License-Identifier: Apache-2.0
#include "group/spread.hpp"

#include <algorithm>
#include <tuple>

#include <tenure/kit/text.hpp>

namespace tenure {
namespace {

std::uint64_t mixed(std::uint64_t z) {  // splitmix64
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// The same for everybody, and a different order of sessions for every election.
std::uint64_t score(std::uint64_t name, SessionId session) { return mixed(name ^ mixed(session.value)); }

struct Share {
  SessionId session;
  std::size_t held, share;
};

std::vector<Share> shares_of(const Holdings& seen) {
  std::vector<Share> out;
  std::size_t elections = seen.free.size() + seen.waiting;
  for (const auto& [session, held] : seen.held) {
    out.push_back({session, held, 0});
    elections += held;
  }
  std::sort(out.begin(), out.end(), [](const Share& a, const Share& b) {
    return std::tuple(b.held, mixed(b.session.value)) < std::tuple(a.held, mixed(a.session.value));
  });
  for (std::size_t i = 0; i < out.size(); ++i) out[i].share = elections / out.size() + (i < elections % out.size());
  return out;
}

/// The session with the highest score among those below their share.
Share* taker_of(const std::string& election, std::vector<Share>& shares) {
  const auto name = hash_of(election);
  Share* best = nullptr;
  for (auto& share : shares)
    if (share.held < share.share && (!best || score(name, share.session) > score(name, best->session))) best = &share;
  return best;
}

/// In an order that says nothing of the names, so that alike names do not go the same way.
template <class Name>
auto by_hash(Name name) {
  return [name](const auto& a, const auto& b) { return hash_of(name(a)) < hash_of(name(b)); };
}

}  // namespace

std::uint64_t hash_of(std::string_view election) { return mixed(fnv1a(election)); }

Allotment allot(const Holdings& seen) {
  Allotment out;
  auto shares = shares_of(seen);
  auto free = seen.free;
  std::sort(free.begin(), free.end(), by_hash([](const std::string& election) { return election; }));
  for (auto& election : free) {
    auto* const taker = taker_of(election, shares);
    if (!taker) break;
    ++taker->held;
    if (taker->session == seen.own) out.claims.push_back(std::move(election));
  }
  std::map<SessionId, std::size_t> above;
  for (const auto& share : shares)
    if (share.held > share.share) above[share.session] = share.held - share.share;
  if (above.empty()) return out;
  auto led = seen.led;
  std::sort(led.begin(), led.end(), by_hash([](const auto& entry) { return entry.first; }));
  for (auto& [election, holder] : led) {
    const auto giver = above.find(holder);
    if (giver == above.end() || giver->second == 0) continue;
    auto* const taker = taker_of(election, shares);
    if (!taker) break;
    --giver->second;
    ++taker->held;
    if (holder == seen.own) out.gifts.emplace_back(std::move(election), taker->session);
  }
  return out;
}

std::optional<SessionId> heir_of(const std::string& election, const Holdings& seen) {
  const auto name = hash_of(election);
  std::optional<SessionId> best;
  for (const auto& [session, held] : seen.held) {
    if (session == seen.own) continue;
    const auto rank = [&](SessionId id) { return std::pair(~seen.held.at(id), score(name, id)); };
    if (!best || rank(session) > rank(*best)) best = session;
  }
  return best;
}

}  // namespace tenure
