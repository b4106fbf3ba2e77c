// SPDX-License-Identifier: Apache-2.0
// A record as it stands in its hash, and the scripts that read and replace it. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/conditional_store.hpp>

#include "reply.hpp"

namespace tenure::redis {

extern const Script read_script, swap_script, step_down_script, list_script;

inline constexpr int format_version = 1;

std::vector<std::string> swap_arguments(const std::optional<Expected>& expected, const Record& next);
std::vector<std::string> step_down_arguments(const StepDown& request);

/// `cursor`: of the page before, "0" at first.
std::vector<std::string> list_arguments(const std::string& prefix, const std::string& cursor);

/// What list_script answers: the hashes of one page, and where the next one begins; "0": there is none.
struct Found {
  std::string cursor{};
  std::vector<std::pair<std::string, Result<Read>>> elections{};
};
Result<Found> found_of(const Reply& reply, const std::string& prefix);

/// `key` is for messages. Fault::corrupt says that the answer is not one of the script.
Result<Read> read_of(const Reply& reply, const std::string& key);
Result<Swap> swap_of(const Reply& reply, const std::string& key);

std::optional<Error> step_down_kept(const Reply& reply, const std::string& key);

/// Reads what swap_script publishes: "token beat" of a new tenure, "token beat released" of a release. Returns nothing
/// for a message of another kind of release or of somebody else. Such a one only says that there may be news.
struct Notice {
  Version version;
  bool released{};
};
std::optional<Notice> notice_of(std::string_view message);

}  // namespace tenure::redis
