// SPDX-License-Identifier: Apache-2.0
// A seat by URL, for programs that tests start.
#pragma once
#include <memory>
#include <string>

#include <tenure/backend.hpp>

namespace tenure::test {

struct StoreArguments {
  std::string url;  ///< file:///DIR or kafka://BROKERS/TOPIC?group=G
  std::string election;
  std::string name;
  std::string preset;      ///< fast, balanced, steady: the store's own. Empty: by term.
  Clock::Duration term{};  ///< Where there is no preset.
};

struct OpenedStore {
  std::shared_ptr<Backend> seat;
  Timing timing;
};

/// Throws std::invalid_argument for a URL or a preset that it does not know.
OpenedStore open_store(const StoreArguments& arguments);

}  // namespace tenure::test
