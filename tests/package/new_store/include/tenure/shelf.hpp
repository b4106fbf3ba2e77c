// SPDX-License-Identifier: Apache-2.0
// The store of examples/store, as a store of the house.
#pragma once
#include <memory>

#include <tenure/election_list.hpp>
#include <tenure/open.hpp>
#include <tenure/shelf_export.hpp>

namespace tenure::shelf {

TENURE_SHELF_EXPORT Opened open_url(const Opening& opening);
TENURE_SHELF_EXPORT ElectionList list_url(const Opening& opening);

}  // namespace tenure::shelf
