// SPDX-License-Identifier: Apache-2.0
// What operators ask: which elections there are, and what the server and our rights there mean for elections.
#pragma once
#include <string>

#include <tenure/check.hpp>
#include <tenure/election_list.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "settings.hpp"

namespace tenure::postgres {

/// `leads`: the table of groups, quoted; without a schema it is one beside the elections'. It need not be there.
Result<Checks> check_up(const Settings& settings, const Limit& limit,
                        const std::string& leads = quoted_table(Options().leads));

/// In the order of their names.
ElectionList list_of(const Settings& settings);

}  // namespace tenure::postgres
