// SPDX-License-Identifier: Apache-2.0
// Finds the known name that is nearest to a mistyped one.
#include <tenure/kit/suggest.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <tenure/kit/text.hpp>

namespace tenure {
namespace {

bool same(char a, char b) { return lower(a) == lower(b); }

/// Levenshtein's distance, where a swap of neighbours counts as one edit too.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view given, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t least = given.size() / 3 + 1;  // As many edits make another word of it.
  for (const auto name : names) {
    // Also keeps a huge `given` from costing anything.
    if (name.size() >= given.size() + least || given.size() >= name.size() + least || given.size() > 2 * name.size())
      continue;
    if (const auto distance = edits(given, name); distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> names) {
  const auto near = nearest(given, names);
  return near.empty() ? "" : ", did you mean \"" + std::string(near) + "\"?";
}

std::string listed(std::span<const std::string_view> names) {
  std::string out;
  for (const auto name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace tenure
