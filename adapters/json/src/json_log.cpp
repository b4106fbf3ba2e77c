// SPDX-License-Identifier: Apache-2.0
// Writes a log line as one JSON object.
#include <tenure/json_log.hpp>

#include <climits>

#include <tenure/kit/logging.hpp>

#include "dialect.hpp"

namespace tenure {

std::string to_json(const LogLine& line) {
  dialect::Json object{{"level", to_string(line.level)}, {"message", line.message}};
  for (const auto& [name, value] : line.fields) object.emplace(name, value);
  return dialect::text(object);
}

Log json_log(Level least) {
  return [least](LogLine line) {
    if (line.level < least) return;
    auto text = to_json(line);
    // What is longer might wait for a reader, or is cut. A byte that is no UTF-8 takes six.
    for (; text.size() >= PIPE_BUF && !line.message.empty(); text = to_json(line))
      line.message.resize(line.message.size() / 2);
    write_to_stderr(text + "\n");
  };
}

}  // namespace tenure
