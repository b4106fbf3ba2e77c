// SPDX-License-Identifier: Apache-2.0
// Sessions and leads as they stand on a server: what the group's scripts are given, and what they answer. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/group_store.hpp>

#include "reply.hpp"

namespace tenure::redis {

inline constexpr int group_format_version = 1;

using Names = std::vector<std::string>;
/// `joined`: without a cursor their leads are told. None is, if the server does not know the cursor.
std::vector<std::string> look_arguments(const std::string& cursor, const Names& joined);
/// `fresh`: the marker, if the group is founded.
std::vector<std::string> open_arguments(SessionId id, const Session& session, std::uint64_t fresh, const Names& joined);
/// `any_marker`: whichever the group has. `claims`: whether they are sent.
std::vector<std::string> commit_arguments(const Commit& commit, bool any_marker, bool claims);
std::vector<std::string> end_arguments(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat);
/// Where a sweep goes on: after that place among the leads, with these sessions.
struct SweepPass {
  std::string at{"0"};
  std::vector<std::string> sessions{};
};
/// `beat`: of this write.
std::vector<std::string> sweep_arguments(const std::string& beat, const SweepPass& pass);
std::vector<std::string> retire_arguments(const std::map<std::string, Token>& leads);
/// `beat`: of this write.
std::vector<std::string> step_down_arguments(const std::string& election, const StepDown& request,
                                             const std::string& beat);

/// `group`: its keys without their ends, for messages. What is no answer of the script's is Fault::corrupt; so is what
/// somebody else wrote. A lead that he wrote is told as unreadable, beside the others.
Result<Look> look_of(const Reply& reply, const std::string& group);
/// Some of all leads, and where the others begin. The first page has the sessions and the cursor.
struct Page {
  std::string next{"0"};  ///< "0": there are no others.
  Look look{};
};
Result<Page> page_of(const Reply& reply, const std::string& group);
/// Adds the leads of `others` that `look` does not tell.
void add_leads(Look& look, Look others);
struct OpenReply {
  Committed committed{};
  bool founded{};
};
Result<OpenReply> opened_of(const Reply& reply, const std::string& group);
Result<Committed> committed_of(const Reply& reply, const Commit& commit, const std::string& group);
struct Swept {
  int removed{};
  SweepPass rest{};
};
Result<Swept> swept_of(const Reply& reply, const std::string& group);
Result<std::set<std::string>> retired_of(const Reply& reply, const std::map<std::string, Token>& leads,
                                         const std::string& group);
/// The second number of an answer that has two.
Result<int> count_of(const Reply& reply, const std::string& group);

/// Whether a push is news to whoever has this cursor. One that is not ours always is.
bool is_news(std::string_view message, std::string_view cursor);
/// The release that a push names. It may be late or forged.
std::optional<Release> release_in(std::string_view message);

}  // namespace tenure::redis
