// SPDX-License-Identifier: Apache-2.0
// The SQL that makes our tables, as text.
#pragma once

namespace tenure::postgres {

/// The files of sql/, word for word. CMake writes them.
extern const char schema_text[], group_schema_text[];

}  // namespace tenure::postgres
