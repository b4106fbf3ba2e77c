// SPDX-License-Identifier: Apache-2.0
// The elections below a directory. Nothing is made there.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tenure/election_list.hpp>

namespace tenure::file {

class List final : public ElectionList {
 public:
  explicit List(std::filesystem::path directory) : directory_(std::move(directory)) {}

  Result<ElectionPage> next(const Limit& limit) override;

 private:
  const std::filesystem::path directory_;
  std::optional<std::vector<std::string>> names_;  ///< Ascending; nothing before the first page.
  std::size_t told_{};
};

}  // namespace tenure::file
