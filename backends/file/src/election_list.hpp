// SPDX-License-Identifier: Apache-2.0
// The elections below a directory. Nothing is made there.
#pragma once
#include <filesystem>

#include <tenure/election_list.hpp>

namespace tenure::file {

ElectionList list_of(const std::filesystem::path& directory);

}  // namespace tenure::file
