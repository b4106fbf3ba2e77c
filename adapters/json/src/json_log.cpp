// SPDX-License-Identifier: Apache-2.0
// Writes a log line as one JSON object.
#include <tenure/json_log.hpp>

#include <tenure/kit/logging.hpp>

#include "dialect.hpp"

namespace tenure {

std::string to_json(const LogLine& line) {
  dialect::Json object{{"level", to_string(line.level)}, {"message", line.message}};
  for (const auto& [name, value] : line.fields) object.emplace(name, value);
  return dialect::text(object);
}

Log json_log(Level least) {
  return [least](const LogLine& line) {
    if (line.level >= least) write_to_stderr(to_json(line) + "\n");
  };
}

}  // namespace tenure
