// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenure::tool {

/// tenure.schema.json, word for word.
extern const char schema_text[];

}  // namespace tenure::tool
