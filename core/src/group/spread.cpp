// SPDX-License-Identifier: Apache-2.0
// Computes every process' share of the elections, so that all processes come to the same one.
#include "group/spread.hpp"

#include <algorithm>
#include <tuple>

#include <tenure/kit/text.hpp>

#include "kit/random.hpp"

namespace tenure {
namespace {

std::uint64_t mixed(std::uint64_t z) { return next_random(z); }

/// The same for everybody, and a different order of sessions for every election.
std::uint64_t score(std::uint64_t name, SessionId session) { return mixed(name ^ mixed(session.value)); }

struct Share {
  SessionId session{};
  Member member{};
  std::size_t share{}, room{};
};
using Shares = std::vector<Share>;

/// Whoever may lead fewer than its part leads those. Returns who shares the rest, and how many these are.
std::pair<std::vector<Share*>, std::size_t> without_full(Shares& shares, std::size_t elections) {
  std::vector<Share*> open;
  for (auto& share : shares) open.push_back(&share);
  for (;;) {
    std::uint64_t weights = 0;
    for (const auto* share : open) weights += share->member.weight;
    const auto full = std::stable_partition(open.begin(), open.end(), [&](const Share* share) {
      return share->member.most >= elections || share->member.most * weights >= elections * share->member.weight;
    });
    if (full == open.end()) return {open, elections};
    for (auto it = full; it != open.end(); ++it) elections -= (*it)->share = (*it)->member.most;
    open.erase(full, open.end());
  }
}

Shares shares_of(const Holdings& seen) {
  Shares out;
  std::size_t elections = seen.free.size() + seen.waiting;
  for (const auto& [session, member] : seen.members) {
    out.push_back({session, member});
    elections += member.held;
  }
  auto [open, rest] = without_full(out, elections);
  std::uint64_t weights = 0;
  for (const auto* share : open) weights += share->member.weight;
  std::vector<std::pair<std::uint64_t, Share*>> rounded;  // with what was cut off
  const auto parts = rest;
  for (auto* share : open) {
    share->share = parts * share->member.weight / weights;
    rest -= share->share;
    if (const auto cut = parts * share->member.weight % weights) rounded.emplace_back(cut, share);
  }
  std::sort(rounded.begin(), rounded.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const auto& one) {
      const auto& share = *one.second;
      return std::tuple(share.member.held > share.share, one.first, mixed(share.session.value));
    };
    return rank(b) < rank(a);
  });
  for (std::size_t i = 0; i < std::min(rest, rounded.size()); ++i) ++rounded[i].second->share;
  for (auto& share : out) share.room = share.share;
  return out;
}

Share* share_of(SessionId session, Shares& shares) {
  const auto it = std::find_if(shares.begin(), shares.end(), [&](const Share& s) { return s.session == session; });
  return it == shares.end() ? nullptr : &*it;
}

/// The session with the highest score among those whose share has room.
Share* taker_of(std::uint64_t name, Shares& shares) {
  Share* best = nullptr;
  for (auto& share : shares)
    if (share.room > 0 && (!best || score(name, share.session) > score(name, best->session))) best = &share;
  return best;
}

/// An election that somebody leads or that is free.
struct Item {
  const std::string* election{};
  std::uint64_t hash{};
  Share* holder{};
  Token token{};
  Share* to{};
};

/// Their order does not depend on how alike the names are, so that alike names do not go the same way.
std::vector<Item> items_of(const Holdings& seen, Shares& shares) {
  std::vector<Item> out;
  out.reserve(seen.free.size() + seen.led.size());
  for (const auto& election : seen.free) out.push_back({&election, hash_of(election)});
  for (const auto& led : seen.led)
    out.push_back({&led.election, hash_of(led.election), share_of(led.session, shares), led.token});
  std::sort(out.begin(), out.end(), [](const Item& a, const Item& b) {
    return std::pair(a.hash, std::string_view(*a.election)) < std::pair(b.hash, std::string_view(*b.election));
  });
  return out;
}

/// Nobody asks which ones. So this takes no longer the more are led.
void keep_by_number(Shares& shares) {
  for (auto& share : shares) share.room -= std::min(share.room, share.member.held);
}

/// The newest tenures stay: so does what was just handed over.
void keep_newest(std::vector<Item>& items) {
  std::vector<Item*> led;
  for (auto& item : items)
    if (item.holder) led.push_back(&item);
  std::stable_sort(led.begin(), led.end(), [](const Item* a, const Item* b) { return b->token < a->token; });
  for (auto* item : led) {
    if (item->holder->room == 0) continue;
    --item->holder->room;
    item->to = item->holder;
  }
}

}  // namespace

std::uint64_t hash_of(std::string_view election) { return mixed(fnv1a(election)); }

Allotment allot(const Holdings& seen) {
  auto shares = shares_of(seen);
  auto items = items_of(seen, shares);
  if (seen.led.empty())
    keep_by_number(shares);
  else
    keep_newest(items);
  Allotment out;
  const auto place = [&](Item& item) {
    if (!item.to && (item.to = taker_of(item.hash, shares))) --item.to->room;
    return item.to && item.to != item.holder;
  };
  for (auto& item : items)
    if (!item.holder && place(item) && item.to->session == seen.own) out.claims.push_back(*item.election);
  for (const auto& share : shares) {
    out.room[share.session] = share.room;
    if (share.session == seen.own) out.excess = share.member.held - std::min(share.member.held, share.share);
  }
  for (auto& item : items)
    if (item.holder && place(item) && item.holder->session == seen.own)
      out.gifts.emplace_back(*item.election, item.to->session);
  if (!seen.led.empty()) out.excess = out.gifts.size();
  return out;
}

std::optional<SessionId> heir_of(const std::string& election, const Holdings& seen) {
  const auto name = hash_of(election);
  const std::pair<const SessionId, Member>* best = nullptr;
  const auto comes_before = [&](const auto& a, const auto& b) {
    const auto part = [](const auto& one, const auto& other) { return (one.second.held + 1) * other.second.weight; };
    return part(a, b) != part(b, a) ? part(a, b) < part(b, a) : score(name, a.first) > score(name, b.first);
  };
  for (const auto& member : seen.members) {
    if (member.first == seen.own || member.second.held >= member.second.most) continue;
    if (!best || comes_before(member, *best)) best = &member;
  }
  return best ? std::optional(best->first) : std::nullopt;
}

}  // namespace tenure
