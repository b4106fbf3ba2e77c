// SPDX-License-Identifier: Apache-2.0
// Makes a backend of a ConditionalStore.
#pragma once
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Makes a backend of a store that keeps one record per election. All lock tables share this protocol.
///
/// A record may be taken over in four cases: there is none; it is released; an unanswered write of this very backend
/// left it; or its lease has ended by *our own clock*, because it has stood unchanged for as long as its holder may
/// believe in it. Every write demands the version that was read. The store's clock decides nothing, so its steps
/// do no harm. Throws std::invalid_argument for a name that is empty or too long.
TENURE_EXPORT std::shared_ptr<Backend> lock_table(std::shared_ptr<ConditionalStore> store, std::string election,
                                                  Candidate candidate = {}, Log log = {});

/// The presets of every lock table: terms of 3, 10 and 30 s. A crashed leader is replaced within a term and a call, on
/// average after 0.9 of a term, and at once if the store knows that it died. Timing::rides_out() is 0.71 of the term.
TENURE_EXPORT Presets lock_table_presets();

}  // namespace tenure
