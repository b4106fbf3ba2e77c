// SPDX-License-Identifier: Apache-2.0
// Goal: the published schema and the decoder accept and refuse the same documents; where a schema cannot express a
// rule, the rule stands in documents.json by name. Method: documents.json, read by both; the schema's verdicts come
// from Python's jsonschema (Debian: python3-jsonschema). Rules of texts rather than of documents (no key twice, 1 MiB,
// 8 levels, UTF-8) are tested in json_test.cpp.
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support.hpp"

namespace tenure::test {
namespace {

using nlohmann::ordered_json;

struct Expected {
  ordered_json document;
  bool by_decoder, by_schema;
  std::string rule;
};

std::vector<Expected> expectations() {
  std::ifstream in(TENURE_DOCUMENTS);
  const auto all = ordered_json::parse(in);
  std::vector<Expected> out;
  for (const auto& [name, part] : all.items()) {
    if (part.is_array()) {
      for (const auto& document : part) out.push_back({document, name == "accepted", name == "accepted", name});
    } else {
      for (const auto& [rule, documents] : part.items())
        for (const auto& document : documents) out.push_back({document, false, true, rule});
    }
  }
  return out;
}

/// The process's exit status, and what it printed.
std::pair<int, std::string> run(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {-1, ""};
  std::string out;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  return {WEXITSTATUS(::pclose(pipe)), out};
}

TEST(JsonSchema, TheDecoderAcceptsAndRefusesAsListed) {
  const Scratch scratch;
  const auto secret = scratch.file("secret", "redis://from-file\n");
  ::setenv("TENURE_TEST_SET", "value", 1);
  ::setenv("TENURE_TEST_URL", "redis://h", 1);
  ::setenv("TENURE_TEST_EMPTY", "", 1);
  ::setenv("TENURE_TEST_LONG", std::string(201, 'x').c_str(), 1);
  ::unsetenv("TENURE_TEST_UNSET");
  std::size_t seen = 0;
  for (const auto& [document, by_decoder, by_schema, rule] : expectations()) {
    auto text = document.dump();
    if (const auto at = text.find("/SECRET"); at != text.npos) text.replace(at, 7, secret);
    const auto of_one = findings(text), of_many = findings_of_group(text);
    std::string said;
    for (const auto& all : {of_one, of_many})
      for (const auto& [pointer, message] : all) said += pointer + " " + message + "\n";
    EXPECT_EQ(of_one.empty() || of_many.empty(), by_decoder) << rule << "\n" << text << "\n" << said;
    EXPECT_FALSE(of_one.empty() && of_many.empty()) << "it is one of both\n" << text;
    ++seen;
  }
  EXPECT_GE(seen, 60u);
}

TEST(JsonSchema, TheSchemaAcceptsAndRefusesAsListed) {
  const auto [status, printed] =
      run("'" TENURE_PYTHON "' '" TENURE_SCHEMA_SCRIPT "' '" TENURE_SCHEMA "' '" TENURE_DOCUMENTS "'");
  if (status == 77) GTEST_SKIP() << "Python has no jsonschema (Debian: python3-jsonschema): the schema is NOT tested";
  ASSERT_EQ(status, 0) << printed;
  std::istringstream lines(printed);
  for (const auto& [document, by_decoder, by_schema, rule] : expectations()) {
    std::string verdict;
    ASSERT_TRUE(std::getline(lines, verdict));
    EXPECT_EQ(verdict, by_schema ? "accepted" : "refused") << rule << "\n" << document;
  }
}

}  // namespace
}  // namespace tenure::test
