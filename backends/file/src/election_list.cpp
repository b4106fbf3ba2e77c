// SPDX-License-Identifier: Apache-2.0
#include "election_list.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include <tenure/kit/store.hpp>

#include "directory.hpp"
#include "errors.hpp"
#include "store.hpp"

namespace tenure::file {
namespace {

constexpr std::size_t page = 200;

/// Adds the elections below the directory of the `pieces`. What is not ours is passed over. False if the limit passed.
bool find(const std::filesystem::path& directory, std::vector<std::string>& pieces, std::vector<std::string>& out,
          const Limit& limit) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (limit.passed()) return false;
    std::error_code ignored;
    if (!std::filesystem::is_directory(entry.symlink_status(ignored))) continue;
    pieces.push_back(entry.path().filename().string());
    if (const auto name = decoded(pieces); name && !name->empty() && !pieces.back().ends_with('~')) {
      out.push_back(*name);
    } else if (pieces.back().ends_with('~') && pieces.size() <= max_election_bytes) {
      if (!find(entry.path(), pieces, out, limit)) return false;
    }
    pieces.pop_back();
  }
  return true;
}

ListedElection look_at(const std::filesystem::path& directory, const std::string& election, const Limit& limit) try {
  const auto found = Store(directory, election).read(limit);
  return listed(election, found, boot_clock().now());
} catch (const std::exception& e) {
  return listed(election, Error{Fault::misconfigured, e.what()}, boot_clock().now());
}

}  // namespace

Result<ElectionPage> List::next(const Limit& limit) try {
  if (!names_) {
    std::vector<std::string> pieces, names;
    if (!find(directory_, pieces, names, limit))
      return Error{Fault::timed_out, "the limit passed before " + directory_.string() + " was listed"};
    std::sort(names.begin(), names.end());
    names_ = std::move(names);
  }
  ElectionPage out;
  for (auto at = told_; at < std::min(told_ + page, names_->size()); ++at) {
    if (limit.passed()) return Error{Fault::timed_out, "the limit passed before a page of elections was read"};
    out.elections.push_back(look_at(directory_, (*names_)[at], limit));
  }
  told_ += out.elections.size();
  out.last = told_ == names_->size();
  return out;
} catch (const std::filesystem::filesystem_error& e) {
  return system_error("cannot list", e.path1().string(), e.code().value());
}

}  // namespace tenure::file
