// SPDX-License-Identifier: Apache-2.0
// The store keeps the contract of all stores. That is all its author writes. Its calls take microseconds, so terms of
// 200 ms are long enough.
//! [suite]
#include "shelf.hpp"

#include <tenure/contract/contract_suite.hpp>

namespace tenure::contract {

const auto shelf = testing::Values(subject(
    "shelf",
    [] {
      return [shelf = std::make_shared<Shelf>()](const std::string& election) {
        return std::make_shared<ShelfStore>(shelf, election);
      };
    },
    milliseconds(200)));

INSTANTIATE_TEST_SUITE_P(shelf, BackendContract, shelf, name_of);
INSTANTIATE_TEST_SUITE_P(shelf, StoreContract, shelf, name_of);

}  // namespace tenure::contract
//! [suite]
