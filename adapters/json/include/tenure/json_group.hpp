// SPDX-License-Identifier: Apache-2.0
// Many elections configured by one JSON document. It is as <tenure/json.hpp> says, but for "election":
//
//   {
//     "store": "redis://127.0.0.1:6379",           a URL as tenure::open_many() takes it
//     "group": "shards",                           processes with the same group contend with each other
//     "elections": ["shard 0", "shard 1"],         each name once; [] if your program joins them
//     "spread": { "on": true, "most": 10, "weight": 2 },  may be missing, as each of the three and "handovers_at_once"
//     "hook_threads": 4,                           may be missing
//     "candidate": { "name": "${HOSTNAME}" },      may be missing
//     "timing": "balanced"                         may be missing
//   }
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/json.hpp>
#include <tenure/json_export.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>

namespace tenure {

/// Opens a group: tenure::open_many of <tenure/stores.hpp>, or open_group_url of one store.
using GroupOpener = OpenedGroup (*)(const Opening&);

/// What Elections need.
struct ConfiguredGroup {
  std::shared_ptr<GroupStore> store{};
  Candidate candidate{};
  Timing timing{};
  Spread spread{};
  int hook_threads{4};
  std::vector<std::string> elections{};  ///< To join(), in the document's order.
};

/// Throws InvalidDocument, also in place of a std::invalid_argument of `open`. What else `open` throws, it lets pass.
TENURE_JSON_EXPORT ConfiguredGroup group_from_json(std::string_view text, GroupOpener open, Log log = {});
/// The same of a file. What cannot be read is a Finding too.
TENURE_JSON_EXPORT ConfiguredGroup group_from_json_file(const std::filesystem::path& path, GroupOpener open,
                                                        Log log = {});

}  // namespace tenure
