// SPDX-License-Identifier: Apache-2.0
// Holds documents against what status.schema.json says of their kind, by Python.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "scratch.hpp"

namespace tenure::test {

/// Skips the test where Python has no jsonschema.
inline void expect_as_schema(const std::string& kind, const std::vector<std::string>& documents) {
  const Scratch scratch;
  std::string files;
  for (std::size_t i = 0; i < documents.size(); ++i) files += " " + scratch.file(std::to_string(i), documents[i]);
  const std::string script =
      "import json,sys\n"
      "try: import jsonschema\n"
      "except ImportError: sys.exit(77)\n"
      "schema = json.load(open(sys.argv[1]))\n"
      "jsonschema.Draft7Validator.check_schema(schema)\n"
      "schema = {\"$ref\": \"#/definitions/\" + sys.argv[2], \"definitions\": schema[\"definitions\"]}\n"
      "for f in sys.argv[3:]: jsonschema.validate(json.load(open(f)), schema)\n"
      "try: jsonschema.validate({\"version\": 2}, schema); sys.exit(1)\n"
      "except jsonschema.ValidationError: pass\n";
  const int status = std::system(
      (std::string(TENURE_PYTHON) + " -c '" + script + "' " TENURE_STATUS_SCHEMA " " + kind + files + " 2>&1").c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "Python has no jsonschema (Debian: python3-jsonschema)";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace tenure::test
