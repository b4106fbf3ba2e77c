// SPDX-License-Identifier: Apache-2.0
#include <tenure/file.hpp>

#include <tenure/lock_table.hpp>

#include "store.hpp"

namespace tenure::file {

std::shared_ptr<ConditionalStore> store(const std::filesystem::path& directory, const std::string& election) {
  return std::make_shared<Store>(directory, election);
}

std::shared_ptr<Backend> open(const std::filesystem::path& directory, const std::string& election, Candidate candidate,
                              Log log) {
  return lock_table(store(directory, election), election, std::move(candidate), std::move(log));
}

}  // namespace tenure::file
