// SPDX-License-Identifier: Apache-2.0
// Goal: the code keeps the rules of the house: who may include whom, one clock, few exports, short public headers, and
// a README whose code is compiled. Method: reads the sources and the libraries' exports. A sample that breaks a rule is
// shown to each rule first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/hooks.hpp>

namespace {

namespace fs = std::filesystem;
using Findings = std::vector<std::string>;

const fs::path house = TENURE_SOURCES;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Files below these folders, as paths relative to the repository.
std::vector<std::string> files(const std::vector<std::string>& folders, const std::set<std::string>& extensions) {
  std::vector<std::string> out;
  for (const auto& folder : folders) {
    if (!fs::exists(house / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(house / folder))
      if (entry.is_regular_file() && (extensions.empty() || extensions.count(entry.path().extension().string())))
        out.push_back(fs::relative(entry.path(), house).generic_string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> sources() { return files({"core", "backends", "adapters"}, {".hpp", ".cpp"}); }

/// Comments become blanks, so that they may speak of what code may not use.
std::string without_comments(const std::string& text) {
  static const std::regex comment(R"(//[^\n]*|/\*[^]*?\*/)");
  return std::regex_replace(text, comment, " ");
}

/// "core", "backends/file", "adapters/gmock": the first folders of a path.
std::string room_of(const std::string& path) {
  const auto first = path.find('/');
  if (path.compare(0, first, "core") == 0) return "core";
  return path.substr(0, path.find('/', first + 1));
}

// ---- arrows ----

/// <tenure/x.hpp> -> the room whose public header it is.
std::map<std::string, std::string> public_headers() {
  std::map<std::string, std::string> out{{"tenure/export.hpp", "core"}};
  for (const auto& path : files({"core", "backends", "adapters"}, {".hpp"}))
    if (const auto at = path.find("/include/tenure/"); at != path.npos) {
      out[path.substr(at + 9)] = room_of(path);
      const auto room = room_of(path);
      out["tenure/" + room.substr(room.find('/') + 1) + "_export.hpp"] = room;
    }
  return out;
}

bool standard_or_posix(const std::string& header) {
  static const std::regex standard("[a-z_]+");
  static const std::set<std::string> posix{
      "arpa/inet.h",   "cerrno",        "dirent.h",        "fcntl.h",      "limits.h",      "linux/magic.h",
      "netdb.h",       "poll.h",        "pthread.h",       "signal.h",     "sys/eventfd.h", "sys/file.h",
      "sys/inotify.h", "sys/ioctl.h",   "sys/mman.h",      "sys/prctl.h",  "sys/random.h",  "sys/resource.h",
      "sys/socket.h",  "sys/time.h",    "sys/stat.h",      "sys/statfs.h", "sys/syscall.h", "sys/timerfd.h",
      "sys/types.h",   "sys/utsname.h", "sys/vfs.h",       "sys/xattr.h",  "time.h",        "unistd.h",
      "errno.h",       "sched.h",       "sys/sysmacros.h", "sys/uio.h",    "sys/un.h",      "sys/signalfd.h",
      "sys/wait.h",    "sys/epoll.h",   "netinet/in.h",    "netinet/tcp.h"};
  return std::regex_match(header, standard) || posix.count(header) > 0;
}

/// Whether the header belongs to the one third-party library of its room.
bool own_library(const std::string& room, const std::string& header) {
  static const std::map<std::string, std::vector<std::string>> libraries{
      {"backends/kafka", {"librdkafka/"}},
      {"backends/postgres", {"pqxx/", "libpq-fe.h"}},
      {"backends/redis", {"hiredis/", "openssl/"}},
      {"backends/etcd", {"curl/", "nlohmann/"}},
      {"backends/http", {"curl/", "nlohmann/"}},
      {"backends/object", {"curl/", "nlohmann/", "openssl/"}},
      {"adapters/fence", {"pqxx/"}},
      {"adapters/http", {"httplib.h", "nlohmann/"}},
      {"adapters/json", {"nlohmann/"}},
      {"adapters/prometheuscpp", {"prometheus/"}},
      {"adapters/spdlog", {"spdlog/"}},
      {"adapters/tool", {"CLI/", "httplib.h", "nlohmann/"}},
      {"adapters/gmock", {"gmock/", "gtest/"}}};
  const auto found = libraries.find(room);
  return found != libraries.end() && std::any_of(found->second.begin(), found->second.end(), [&](const auto& prefix) {
           return header.compare(0, prefix.size(), prefix) == 0;
         });
}

/// In core, election and lock_table may include kit and time, but not each other. kit may include time. An include
/// names the room. Who tells by JSON includes the dialect, which needs no library.
bool local_include_is_right(const std::string& path, const std::string& header) {
  static const std::map<std::string, std::set<std::string>> below{{"group", {"election", "lock_table", "kit", "time"}},
                                                                  {"election", {"kit", "time"}},
                                                                  {"lock_table", {"kit", "time"}},
                                                                  {"kit", {"time"}},
                                                                  {"time", {}}};
  // The stores over HTTP share its headers.
  if (header.starts_with("web/") &&
      (path.starts_with("backends/etcd/src/") || path.starts_with("backends/object/src/")))
    return fs::exists(house / "backends/http/src" / header);
  if (header == "dialect.hpp" && (path.starts_with("adapters/http/src/") || path.starts_with("adapters/tool/src/")))
    return true;
  // A FakeElection decides as core does.
  if (path.starts_with("adapters/testing/src/")) return fs::exists(house / "core/src" / header);
  if (!path.starts_with("core/src/"))
    return header.find('/') == header.npos && fs::exists((house / path).parent_path() / header);
  const auto room_in = [](const std::string& within) { return within.substr(0, within.find('/')); };
  const auto from = below.find(room_in(path.substr(std::string("core/src/").size())));
  const auto to = room_in(header);
  return from != below.end() && fs::exists(house / "core/src" / header) &&
         (to == from->first || from->second.count(to) > 0);
}

Findings wrong_includes(const std::string& path, const std::string& text) {
  static const auto headers = public_headers();
  static const std::regex include(R"re((?:^|\n)\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)"))re");
  const auto room = room_of(path);
  Findings out;
  const auto code = without_comments(text);
  for (std::sregex_iterator it(code.begin(), code.end(), include), end; it != end; ++it) {
    const std::string system = (*it)[1], local = (*it)[2];
    bool right = false;
    if (!local.empty()) {
      right = local_include_is_right(path, local);
    } else if (system == "registered_stores.hpp") {  // made of backends/stores.list
      right = room == "backends/stores";
    } else if (const auto found = headers.find(system); found != headers.end()) {
      // The bundle of stores may include the public headers of every store; the program may include all. What is told
      // by HTTP, or by a library for metrics, includes metrics.
      right = found->second == "core" || found->second == room || room == "adapters/tool" ||
              (room == "adapters/gmock" && found->second == "adapters/testing") ||
              (room == "backends/stores" && found->second.starts_with("backends/")) ||
              ((room == "adapters/http" || room == "adapters/prometheuscpp") && found->second == "adapters/prometheus");
    } else {
      right = standard_or_posix(system) || own_library(room, system);
    }
    if (!right) out.push_back(path + " includes " + (local.empty() ? system : local));
  }
  return out;
}

TEST(House, AWrongIncludeIsFound) {
  const auto wrong = [](const std::string& path, const std::string& include) {
    return wrong_includes(path, "// x\n#pragma once\n#include " + include + "\n").size() == 1;
  };
  EXPECT_TRUE(wrong("core/src/sample.cpp", "<tenure/memory.hpp>")) << "core knows no store";
  EXPECT_TRUE(wrong("core/src/sample.cpp", "<tenure/gmock.hpp>"));
  EXPECT_TRUE(wrong("core/src/sample.cpp", "<tenure/faulty.hpp>")) << "nor a double";
  EXPECT_TRUE(wrong("adapters/http/src/sample.cpp", "\"election/candidacy.hpp\""));
  EXPECT_FALSE(wrong("adapters/testing/src/sample.cpp", "\"election/candidacy.hpp\"")) << "which decides as core does";
  EXPECT_TRUE(wrong("core/src/sample.cpp", "<librdkafka/rdkafka.h>")) << "core knows no library";
  EXPECT_TRUE(wrong("core/src/sample.cpp", "<gtest/gtest.h>"));
  EXPECT_TRUE(wrong("core/src/sample.cpp", "\"../../backends/memory/src/memory.cpp\""));
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "<tenure/memory.hpp>")) << "a store never knows another";
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "<tenure/memory_export.hpp>"));
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "<librdkafka/rdkafka.h>")) << "one library, one room";
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "\"lock_table_decisions.hpp\"")) << "core's insides are its own";
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "<lock_table_decisions.hpp>"));
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "<tenure/stores.hpp>")) << "nor the bundle of them";
  EXPECT_TRUE(wrong("adapters/gmock/include/tenure/sample.hpp", "<tenure/stores.hpp>"));
  EXPECT_TRUE(wrong("core/src/sample.cpp", "<tenure/stores.hpp>"));
  EXPECT_TRUE(wrong("backends/file/src/sample.cpp", "\"dialect.hpp\"")) << "a store tells no JSON";
  EXPECT_FALSE(wrong("adapters/http/src/sample.cpp", "\"dialect.hpp\""));
  EXPECT_FALSE(wrong("backends/stores/src/sample.cpp", "<tenure/file.hpp>")) << "which knows all their public headers";
  EXPECT_TRUE(wrong("backends/stores/src/sample.cpp", "\"place.hpp\"")) << "and nothing else of theirs";
  EXPECT_TRUE(wrong("backends/stores/src/sample.cpp", "<librdkafka/rdkafka.h>"));
  EXPECT_TRUE(wrong("backends/stores/src/sample.cpp", "<tenure/gmock.hpp>"));
  EXPECT_TRUE(wrong("backends/memory/src/sample.cpp", "<tenure/gmock.hpp>")) << "a store knows no adapter";
  EXPECT_TRUE(wrong("adapters/gmock/include/tenure/sample.hpp", "<tenure/memory.hpp>")) << "nor an adapter a store";
  EXPECT_TRUE(wrong_includes("core/src/sample.cpp", "#  include<tenure/memory.hpp>").size() == 1);
  EXPECT_TRUE(wrong_includes("core/src/sample.cpp", "// #include <tenure/memory.hpp>\n").empty());
}

TEST(House, AWrongArrowBetweenRoomsOfCoreIsFound) {
  const auto wrong = [](const std::string& room, const std::string& header) {
    return wrong_includes("core/src/" + room + "/sample.cpp", "// x\n#include \"" + header + "\"\n").size() == 1;
  };
  EXPECT_TRUE(wrong("lock_table", "election/candidacy.hpp"));
  EXPECT_TRUE(wrong("election", "lock_table/lock_table_decisions.hpp"));
  EXPECT_TRUE(wrong("kit", "election/candidacy.hpp"));
  EXPECT_TRUE(wrong("time", "kit/random.hpp"));
  EXPECT_TRUE(wrong("election", "candidacy.hpp")) << "without its room";
  EXPECT_TRUE(wrong("attic", "kit/random.hpp")) << "a room that nobody knows";
  EXPECT_TRUE(wrong("election", "group/spread.hpp"));
  EXPECT_FALSE(wrong("group", "election/lease.hpp"));
  EXPECT_FALSE(wrong("election", "election/candidacy.hpp"));
  EXPECT_FALSE(wrong("lock_table", "kit/random.hpp"));
}

TEST(House, IncludesFollowTheArrows) {
  std::size_t seen = 0;
  for (const auto& path : sources()) {
    ++seen;
    for (const auto& finding : wrong_includes(path, read(house / path))) ADD_FAILURE() << finding;
  }
  EXPECT_GT(seen, 30u);
}

/// Includes of <tenure/kit/...>, which is for those who write a backend or an adapter.
Findings kit_in(const std::string& path, const std::string& text) {
  static const std::regex include(R"re((?:^|\n)\s*#\s*include\s*[<"](tenure/kit/[^>"]*))re");
  std::smatch found;
  const auto code = without_comments(text);
  return std::regex_search(code, found, include) ? Findings{path + " includes " + found[1].str()} : Findings{};
}

TEST(House, AnExampleThatIncludesTheKitIsFound) {
  EXPECT_EQ(kit_in("examples/x.cpp", "// x\n#include <tenure/kit/start_thread.hpp>\n").size(), 1u);
  EXPECT_TRUE(kit_in("examples/x.cpp", "// x\n#include <tenure/open.hpp>\n").empty());
}

TEST(House, ExamplesIncludeNothingOfTheKit) {
  const auto examples = files({"examples"}, {".hpp", ".cpp"});
  EXPECT_GE(examples.size(), 3u);
  for (const auto& path : examples)
    for (const auto& finding : kit_in(path, read(house / path))) ADD_FAILURE() << finding;
}

/// Programs of examples/ that no test starts by name.
Findings examples_not_run(const std::vector<std::string>& programs, const std::string& tests) {
  Findings out;
  for (const auto& name : programs)
    if (tests.find("({\"" + name + "\"") == tests.npos && tests.find("TARGET_FILE:example_" + name + ">") == tests.npos)
      out.push_back(name);
  return out;
}

TEST(House, AnExampleThatNoTestRunsIsFound) {
  const std::string tests = "Example first({\"leader\"});\n\"$<TARGET_FILE:example_any>\"";
  EXPECT_EQ(examples_not_run({"leader", "lead", "any", "hooks"}, tests), (Findings{"lead", "hooks"}));
}

TEST(House, EveryExampleIsRunByATest) {
  std::vector<std::string> programs;
  for (const auto& path : files({"examples"}, {".cpp"}))
    if (fs::path(path).parent_path() == "examples" && read(house / path).find("int main(") != std::string::npos)
      programs.push_back(fs::path(path).stem().string());
  EXPECT_GT(programs.size(), 10u);
  std::string tests;
  for (const auto& path : files({"tests/examples", "tests/prometheus"}, {".cpp", ".txt"})) tests += read(house / path);
  for (const auto& name : examples_not_run(programs, tests))
    ADD_FAILURE() << "examples/" << name << ".cpp is run by no test of tests/examples";
}

// ---- one clock ----

Findings foreign_clocks(const std::string& path, const std::string& text) {
  if (path == "core/src/time/clock.cpp") return {};
  static const std::regex clocks(
      R"(\b(system_clock|steady_clock|high_resolution_clock|utc_clock|CLOCK_[A-Z_]+|clock_gettime|gettimeofday|timespec_get|clock_nanosleep|nanosleep|usleep|this_thread::sleep_for|this_thread::sleep_until|timed_mutex|try_lock_for|try_lock_until)\b|\bstd::(time|clock)\s*\(|\b(time|sleep)\s*\(\s*(nullptr|NULL|0|[0-9]+)\s*\)|\.wait_for\s*\()");
  Findings out;
  const auto code = without_comments(text);
  for (std::sregex_iterator it(code.begin(), code.end(), clocks), end; it != end; ++it)
    out.push_back(path + " uses " + it->str());
  return out;
}

TEST(House, AnotherClockIsFound) {
  for (const std::string sample :
       {"std::chrono::system_clock::now()", "steady_clock::now()", "clock_gettime(CLOCK_MONOTONIC, &t)",
        "gettimeofday(&t, 0)", "std::time(nullptr)", "::time(NULL)", "sleep(1)", "std::this_thread::sleep_for(x)",
        "cv.wait_for(lock, 1s)", "usleep(10)"})
    EXPECT_FALSE(foreign_clocks("backends/file/src/sample.cpp", sample).empty()) << sample;
  for (const std::string sample :
       {"// steady_clock", "/* CLOCK_MONOTONIC\n */", "waker.wait_until(t)", "lifetime(0)", "boot_clock().now()"})
    EXPECT_TRUE(foreign_clocks("backends/file/src/sample.cpp", sample).empty()) << sample;
}

TEST(House, CoreAndBackendsKnowNoClockButOurs) {
  for (const auto& path : files({"core", "backends"}, {".hpp", ".cpp"}))
    for (const auto& finding : foreign_clocks(path, read(house / path))) ADD_FAILURE() << finding;
}

// ---- public headers and exports ----

TEST(House, PublicHeadersAreShort) {
  std::size_t seen = 0;
  for (const auto& path : files({"core", "backends", "adapters", "tests/contract"}, {".hpp"})) {
    if (path.find("/include/") == path.npos) continue;
    ++seen;
    const auto text = read(house / path);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 120) << path;
  }
  EXPECT_GT(seen, 15u);
}

/// What a public header includes of a client library. Its users would need that library's headers. The adapters to a
/// library of the user's own are there for that.
Findings vendors_in(const std::string& path, const std::string& text) {
  static const std::set<std::string> for_the_users_library{"adapters/fence", "adapters/gmock", "adapters/spdlog",
                                                           "adapters/prometheuscpp"};
  static const std::regex include(R"re((?:^|\n)\s*#\s*include\s*<([^>]+)>)re");
  Findings out;
  const auto code = without_comments(text);
  for (std::sregex_iterator at(code.begin(), code.end(), include), end; at != end; ++at)
    if (const auto header = (*at)[1].str(); !header.starts_with("tenure/") && !standard_or_posix(header) &&
                                            !for_the_users_library.count(room_of(path)) &&
                                            fs::path(path).filename() != "http_mount.hpp")
      out.push_back(path + " includes " + header);
  return out;
}

/// Classes of a header that says nothing of threads. core/README.md has the rule for functions and structs.
Findings threadless(const std::string& path, const std::string& text) {
  static const std::regex head(R"re((?:^|\n)class [^;{]*\{)re"), threads("[Tt]hread");
  std::smatch found;
  return std::regex_search(text, found, head) && !std::regex_search(text, threads) ? Findings{path} : Findings{};
}

/// Which of these texts of public headers include `wanted` neither themselves nor by another one.
Findings without_include(const std::string& wanted, const std::map<std::string, std::string>& headers) {
  static const std::regex include(R"re((?:^|\n)#include <([^>]+)>)re");
  std::set<std::string> reaching{wanted};
  for (std::size_t before = 0; before != reaching.size();) {
    before = reaching.size();
    for (const auto& [header, text] : headers)
      for (std::sregex_iterator at(text.begin(), text.end(), include), end; at != end; ++at)
        if (reaching.contains((*at)[1])) reaching.insert(header);
  }
  Findings out;
  for (const auto& [header, text] : headers)
    if (!reaching.contains(header)) out.push_back(header);
  return out;
}

TEST(House, APublicHeaderThatMayLinkToAnotherBuildIsFound) {
  const std::map<std::string, std::string> headers{{"a", "#include <wanted>\n"}, {"b", "// x\n#include <a>\n"}};
  EXPECT_EQ(without_include("wanted", headers), Findings{});
  EXPECT_EQ(without_include("a", headers), Findings{});
  EXPECT_EQ(without_include("b", headers), Findings{"a"});
}

TEST(House, NoPublicHeaderLinksToAnotherBuild) {
  std::map<std::string, std::string> headers;
  for (const auto& path : files({"core", "backends", "adapters"}, {".hpp"}))
    if (const auto at = path.find("/include/"); at != path.npos) headers[path.substr(at + 9)] = read(house / path);
  EXPECT_GT(headers.size(), 40u);
  for (const auto& header : without_include("tenure/kit/same_build.hpp", headers))
    ADD_FAILURE() << header << " does not include <tenure/kit/same_build.hpp>";
}

TEST(House, APublicHeaderThatNamesAVendorOrForgetsThreadsIsFound) {
  const std::string path = "backends/kafka/include/tenure/sample.hpp";
  EXPECT_EQ(vendors_in(path, "#include <librdkafka/rdkafka.h>\n#include <tenure/log.hpp>\n#include <string>\n").size(),
            1u);
  EXPECT_EQ(vendors_in("adapters/http/include/tenure/http.hpp", "// x\n#include <httplib.h>\n").size(), 1u);
  EXPECT_EQ(vendors_in("adapters/spdlog/include/tenure/spdlog.hpp", "#include <spdlog/spdlog.h>\n"), Findings{});
  EXPECT_EQ(threadless(path, "class A;\n\nclass TENURE_EXPORT B {\n};\n"), Findings{path});
  EXPECT_EQ(threadless(path, "class A;\nstruct B {};\n"), Findings{});
  EXPECT_EQ(threadless(path, "/// Any thread may call it.\nclass B {\n};\n"), Findings{});
}

TEST(House, PublicHeadersNameNoVendorAndSayWhichThreadsMayCall) {
  std::size_t seen = 0;
  for (const auto& path : files({"core", "backends", "adapters"}, {".hpp"})) {
    if (path.find("/include/") == path.npos) continue;
    ++seen;
    const auto text = read(house / path);
    for (const auto& finding : vendors_in(path, text)) ADD_FAILURE() << finding;
    for (const auto& finding : threadless(path, text))
      ADD_FAILURE() << finding << " does not say which threads may call";
  }
  EXPECT_GT(seen, 40u);
}

/// The name a user would write, of a demangled symbol: "vtable for tenure::A" -> "A", "tenure::f(int)" -> "f".
std::optional<std::string> our_name(std::string symbol) {
  for (const std::string prefix : {"vtable for ", "typeinfo for ", "typeinfo name for ", "VTT for ",
                                   "non-virtual thunk to ", "guard variable for "})
    if (symbol.compare(0, prefix.size(), prefix) == 0) symbol.erase(0, prefix.size());
  static const std::regex ours(R"(tenure::(?:[a-z]+::)?([A-Za-z_0-9]+).*)");
  std::smatch match;
  if (!std::regex_match(symbol, match, ours)) return std::nullopt;
  return match[1].str();
}

/// Whether it is of a class that a public header only names, in a class: `class Shell;`. Users cannot call into it.
bool of_private_class(const std::string& symbol, const std::set<std::string>& named) {
  static const std::regex parts(R"(::(\w+))");
  const auto name = symbol.substr(0, symbol.find('('));
  for (std::sregex_iterator at(name.begin(), name.end(), parts), end; at != end; ++at)
    if (named.count((*at)[1].str())) return true;
  return false;
}

std::set<std::string> named_only(const std::string& declared) {
  static const std::regex inner(R"(\n  (?:class|struct) (\w+);)");
  std::set<std::string> out;
  for (std::sregex_iterator at(declared.begin(), declared.end(), inner), end; at != end; ++at) out.insert((*at)[1]);
  return out;
}

/// Symbols that no public header declares. `exported` has the lines of nm. libstdc++ makes the templates of the
/// standard library visible, so these are left out.
Findings strangers(const std::string& exported, const std::string& declared) {
  static const std::regex line(R"([0-9a-f]+ ([A-Za-z]) (.*))");
  static const std::regex standard(
      R"((?:(?:vtable|typeinfo|typeinfo name) for |guard variable for |[a-z ]*)?(?:std::|__gnu_cxx::|operator ).*|.*[ >]std::.*|.*\b__gnu_cxx::.*)");
  const auto private_classes = named_only(declared);
  Findings out;
  std::istringstream in(exported);
  for (std::string text; std::getline(in, text);) {
    std::smatch match;
    if (!std::regex_match(text, match, line)) continue;
    const auto kind = match[1].str(), symbol = match[2].str();
    if (kind == "A" || symbol == "_init" || symbol == "_fini") continue;
    const auto name = our_name(symbol);
    if (!name && (kind == "W" || kind == "V" || kind == "u") && std::regex_match(symbol, standard)) continue;
    if (!name || !std::regex_search(declared, std::regex("_EXPORT[^;{]*\\b" + *name + "\\b")) ||
        of_private_class(symbol, private_classes))
      out.push_back(symbol);
  }
  return out;
}

std::string run(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  char buffer[4096];
  while (pipe)
    if (const auto n = std::fread(buffer, 1, sizeof buffer, pipe.get()))
      out.append(buffer, n);
    else
      break;
  return out;
}

std::string declarations() {
  std::string out;
  for (const auto& path : files({"core", "backends", "adapters"}, {".hpp"}))
    if (path.find("/include/") != path.npos) out += without_comments(read(house / path));
  return out;
}

TEST(House, AnUndeclaredExportIsFound) {
  const auto declared = declarations();
  const auto stranger = [&](const std::string& symbol) {
    return !strangers("0000000000001234 T " + symbol, declared).empty();
  };
  EXPECT_TRUE(stranger("tenure::Candidacy::tick(std::chrono::time_point<int>)"));
  EXPECT_TRUE(stranger("tenure::LockTableDecisions::saw(tenure::Read const&)"));
  EXPECT_TRUE(stranger("tenure::random_u64()"));
  EXPECT_TRUE(stranger("helper(int)"));
  EXPECT_TRUE(stranger("rd_kafka_new"));
  EXPECT_TRUE(stranger("tenure::LeaderManager::Shell::start()"));
  EXPECT_TRUE(stranger("vtable for tenure::ManualClock::ManualWaker"));
  EXPECT_FALSE(stranger("tenure::LeaderManager::start()"));
  EXPECT_FALSE(stranger("vtable for tenure::Backend"));
  EXPECT_FALSE(stranger("tenure::lock_table_presets()"));
  EXPECT_FALSE(stranger("tenure::boot_clock()"));
}

TEST(House, LibrariesExportOnlyWhatHeadersDeclare) {
  const std::string nm = TENURE_NM;
  ASSERT_FALSE(nm.empty()) << "nm was not found (Debian: apt install binutils)";
  if (!fs::exists(TENURE_PACKAGE)) GTEST_SKIP() << "needs the shared libraries that package.installed_shared installs";
  const auto declared = declarations();
  int libraries = 0;
  for (const auto& found : fs::recursive_directory_iterator(TENURE_PACKAGE)) {
    const auto library = found.path().string();
    if (found.is_symlink() || library.find("/libtenure_") == library.npos) continue;
    if (library.ends_with(".a")) continue;  // the doubles for tests are always static
    ++libraries;
    const auto exported = run("'" + nm + "' -D --defined-only -C '" + library + "'");
    EXPECT_NE(exported.find(" T tenure::"), exported.npos) << library << " exports nothing";
    for (const auto& symbol : strangers(exported, declared)) ADD_FAILURE() << library << " exports " << symbol;
  }
  EXPECT_GE(libraries, 3) << "core, memory and file at least, in " TENURE_PACKAGE;
}

// ---- every file ----

std::vector<std::string> texts() {
  auto out = files({"core", "backends", "adapters", "tests", "examples", "docker", ".ci"}, {});
  out.push_back("CMakeLists.txt");
  std::erase_if(out, [](const std::string& path) {
    static const std::set<std::string> data{".md", ".json", ".svg", ".png", ".bin", ".txt"};
    const auto name = fs::path(path).filename().string();
    return path.find("__pycache__") != path.npos || name[0] == '.' ||
           (data.count(fs::path(path).extension().string()) && name != "CMakeLists.txt");
  });
  return out;
}

// ---- structs ----

/// Structs with members of a text. Those of a function's body stand deeper.
std::vector<std::string> structs(const std::string& text) {
  static const std::regex head(R"((?:^|\n)(?:struct (?:[A-Z_]+_EXPORT )?|  struct )(\w+) \{\s*\w)");
  std::vector<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) out.push_back((*at)[1]);
  return out;
}

TEST(House, StructsWithMembersAreFound) {
  EXPECT_EQ(structs("struct A;\nstruct B {};\nstruct C {\n  int c;\n};\nstruct X_EXPORT D { int d; };\n"),
            (std::vector<std::string>{"C", "D"}));
}

TEST(House, EveryPublicStructIsMadeByNamedFields) {
  const auto made = read(house / "tests/house/aggregates.cpp");
  std::size_t seen = 0;
  for (const auto& path : files({"core", "backends", "adapters"}, {".hpp"})) {
    if (path.find("/include/") == path.npos || path.find("/kit/") != path.npos) continue;
    const auto room = room_of(path);
    const auto store = room.starts_with("backends/") ? room.substr(9) + "::" : "";
    for (const auto& name : structs(without_comments(read(house / path)))) {
      ++seen;
      EXPECT_NE(made.find(store + name + "{."), made.npos)
          << path << ": struct " << name << " belongs into tests/house/aggregates.cpp";
    }
  }
  EXPECT_GT(seen, 25u);
}

// ---- documents ----

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// The lines between two lines that are "//! [name]" or "#! [name]", moved to the left edge.
std::string region(const std::string& text, const std::string& name) {
  const std::regex mark(R"(\s*(//|#)! \[)" + name + R"(\]\s*)");
  std::vector<std::string> lines;
  int marks = 0;
  auto indent = std::string::npos;
  for (const auto& line : lines_of(text)) {
    if (std::regex_match(line, mark)) {
      ++marks;
    } else if (marks == 1) {
      lines.push_back(line);
      if (const auto first = line.find_first_not_of(' '); first != line.npos) indent = std::min(indent, first);
    }
  }
  std::string out;
  for (const auto& line : lines) out += (line.empty() ? line : line.substr(indent)) + "\n";
  return marks == 2 ? out : "";
}

/// Blocks of code that do not equal the file, or the region of it, that the line above them names.
Findings misquoted(const std::string& document) {
  static const std::regex head(R"(```(cpp|cmake|json))"), source(R"(<!-- (\S+)(?: \[(\w+)\])? -->)");
  Findings out;
  const auto lines = lines_of(document);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!std::regex_match(lines[i], head)) continue;
    const auto where = "line " + std::to_string(i + 1);
    std::smatch named;
    if (i == 0 || !std::regex_match(lines[i - 1], named, source)) {
      out.push_back(where + ": the line above does not say which file it is from");
      continue;
    }
    std::string block;
    for (auto at = i + 1; at < lines.size() && lines[at] != "```"; ++at) block += lines[at] + "\n";
    const auto text = read(house / named[1].str());
    const auto original = named[2].matched ? region(text, named[2]) : text;
    if (original.empty() || block != original) out.push_back(where + " differs from " + named[1].str());
  }
  return out;
}

TEST(House, ABlockOfCodeThatDiffersFromItsFileIsFound) {
  EXPECT_EQ(region("a\n  //! [x]\n  b\n\n    c\n  //! [x]\nd\n", "x"), "b\n\n  c\n");
  EXPECT_EQ(region("//! [x]\nb\n", "x"), "") << "no end";
  const std::string open = "<!-- examples/every_store.cpp [any] -->\n```cpp\n", close = "```\n";
  const auto right = open + region(read(house / "examples/every_store.cpp"), "any") + close;
  EXPECT_EQ(misquoted(right), Findings{});
  EXPECT_EQ(misquoted(open + "auto opened = 1;\n" + close).size(), 1u);
  EXPECT_EQ(misquoted("<!-- examples/gone.cpp [any] -->\n```cpp\n" + close).size(), 1u);
  EXPECT_EQ(misquoted("Text.\n```cpp\nint i;\n" + close).size(), 1u);
}

std::vector<std::string> documents() {
  auto out = files({"core", "backends", "adapters", "tests", "examples", "docker", ".github"}, {".md"});
  out.insert(out.end(), {"README.md", "CHANGELOG.md"});
  EXPECT_GT(out.size(), 6u);
  return out;
}

std::size_t words_of(const std::string& document) {
  std::istringstream in(document);
  return static_cast<std::size_t>(
      std::distance(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()));
}

/// What a newcomer reads to its end. Whatever does not fit has a room of its own.
TEST(House, TheReadmeIsShort) {
  EXPECT_EQ(words_of("a b\n\n```\nc\n```\n"), 5u);
  EXPECT_LE(words_of(read(house / "README.md")), 2500u);
}

TEST(House, EveryBlockOfCodeQuotesAFile) {
  for (const auto& path : documents())
    for (const auto& finding : misquoted(read(house / path))) ADD_FAILURE() << path << ", " << finding;
}

/// Blocks of a kind that no test looks at. "" is a drawing, or what a program printed.
Findings unknown_blocks(const std::string& document) {
  static const std::regex fence(R"(\s*(?:```|~~~)(.*))");
  static const std::set<std::string> known{"cpp", "cmake", "json", "sh", "sql", ""};
  Findings out;
  bool inside = false;
  for (const auto& line : lines_of(document)) {
    std::smatch found;
    if (!std::regex_match(line, found, fence)) continue;
    if (!inside && (known.count(found[1]) == 0 || !line.starts_with("```"))) out.push_back(line);
    inside = !inside;
  }
  if (inside) out.push_back("a block without an end");
  return out;
}

TEST(House, ABlockOfAnUnknownKindIsFound) {
  EXPECT_EQ(unknown_blocks("```sh\nx\n```\n\n```\ny\n```\n"), Findings{});
  EXPECT_EQ(unknown_blocks("```yaml\na: 1\n```\n~~~\nx\n~~~\n  ```cpp\n  int i;\n  ```\n```sh\n"),
            (Findings{"```yaml", "~~~", "  ```cpp", "a block without an end"}));
}

TEST(House, EveryBlockIsOfAKindThatATestLooksAt) {
  for (const auto& path : documents())
    for (const auto& block : unknown_blocks(read(house / path))) ADD_FAILURE() << path << " has " << block;
}

/// What the commands of a document name of ours that is not there: a file, a program of a build, a label of tests/run.
Findings dead_commands(const std::string& document, const std::string& all_cmake) {
  static const std::regex block("```sh\n([^]*?)```"), comment("(^|\n)#.*| #.*"), word(R"([^\s"'$();=]+)");
  static const std::regex ours(R"((?:\./)?((?:docker|tests|examples|core|backends|adapters|\.ci)/.+))");
  static const std::regex built(R"((?:\./)?build[-a-z]*/.*?([a-z_]+))"), name("[a-z_]+");
  const auto known = [&](const std::string& target) {
    if (target == "nightly") return fs::exists(house / "tests/nightly");
    static const std::regex store("^(file|kafka|memory|postgres|redis)(?=_)");  // of a target for each store
    const auto wanted = std::regex_replace(target, store, "($1|[$][{]store[}])");
    return std::regex_search(all_cmake, std::regex("[ (;\"]" + wanted + "[ );\"\\n]"));
  };
  Findings out;
  for (std::sregex_iterator at(document.begin(), document.end(), block), end; at != end; ++at)
    for (const auto& line : lines_of(std::regex_replace((*at)[1].str(), comment, "$1"))) {
      bool names = false;  // of labels or targets, until the command ends
      for (std::sregex_iterator w(line.begin(), line.end(), word); w != end; ++w) {
        std::smatch match;
        const auto text = w->str();
        if (std::regex_match(text, match, ours) ? !fs::exists(house / match[1].str())
            : std::regex_match(text, match, built) || (names && std::regex_match(text, match, name))
                ? !known(match[match.size() - 1])
                : false)
          out.push_back(text);
        names = (names && text != "&&") || text.ends_with("tests/run") || text == "ninja";
      }
    }
  return out;
}

/// The text of all CMake files and presets of ours, and the names of the programs that are one file each.
std::string all_cmake() {
  auto out = read(house / "CMakePresets.json");
  for (const auto& path : files({"tests/bench"}, {".cpp"})) out += " " + fs::path(path).stem().string() + "\n";
  for (const auto& path : files({"core", "backends", "adapters", "tests", "examples"}, {".txt", ".cmake"}))
    out += read(house / path);
  return out;
}

TEST(House, ACommandThatIsNotThereIsFound) {
  const auto cmake = all_cmake();
  EXPECT_EQ(dead_commands("```sh\ntests/run core # no/such\n./docker/redis start\nninja -C build core_kit_test\n```\n",
                          cmake),
            Findings{});
  EXPECT_EQ(
      dead_commands("```sh\ntests/run corr\ndocker/reddis start\n# x\nninja -C build core_kit_tests && tests/run\n"
                    "build/tests/core/core_tset\n```\n",
                    cmake),
      (Findings{"corr", "docker/reddis", "core_kit_tests", "build/tests/core/core_tset"}));
}

TEST(House, EveryCommandOfADocumentIsThere) {
  const auto cmake = all_cmake();
  for (const auto& path : documents())
    for (const auto& finding : dead_commands(read(house / path), cmake))
      ADD_FAILURE() << path << " names " << finding << ", which is not there";
}

/// The options of our build and the presets that a document names, in its text too, and that are not there.
Findings dead_settings(const std::string& document, const std::string& all_cmake) {
  static const std::regex setting(R"(-D(TENURE_[A-Z_]+)|--preset[ =]([a-z]+))");
  Findings out;
  for (std::sregex_iterator at(document.begin(), document.end(), setting), end; at != end; ++at) {
    std::string room = (*at)[1].matched ? (*at)[1].str().substr(std::string("TENURE_").size()) : "";
    std::transform(room.begin(), room.end(), room.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto is = (*at)[1].matched ? "(option|set)\\(" + (*at)[1].str() + "[ )]|tenure_optional_room\\([a-z]+/" +
                                           room + "\\)|\n" + room + " "
                                     : "\"name\": \"" + (*at)[2].str() + "\"";
    if (!std::regex_search(all_cmake, std::regex(is))) out.push_back(at->str());
  }
  return out;
}

TEST(House, ASettingThatIsNotThereIsFound) {
  const auto cmake = all_cmake() + read(house / "CMakeLists.txt") + read(house / "backends/stores.list");
  EXPECT_EQ(dead_settings("`-DTENURE_TESTS=OFF -DTENURE_KAFKA=ON`, `cmake --preset package`", cmake), Findings{});
  EXPECT_EQ(dead_settings("`-DTENURE_TEST=OFF -DTENURE_KAFKAS=ON`, `cmake --preset packages`", cmake),
            (Findings{"-DTENURE_TEST", "-DTENURE_KAFKAS", "--preset packages"}));
}

TEST(House, EverySettingThatADocumentNamesIsThere) {
  const auto cmake = all_cmake() + read(house / "CMakeLists.txt") + read(house / "backends/stores.list");
  for (const auto& path : documents())
    for (const auto& finding : dead_settings(read(house / path), cmake))
      ADD_FAILURE() << path << " names " << finding << ", which is not there";
}

/// Links of a document to files that are not there, seen from its folder.
Findings dead_links(const std::string& document, const fs::path& folder) {
  static const std::regex code("```[^]*?```"), link(R"(\]\(([^)#\s]+)[^)\s]*\))");
  const auto text = std::regex_replace(document, code, "");
  Findings out;
  for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at)
    if (const auto to = (*at)[1].str(); to.find("://") == to.npos && !fs::exists(folder / to)) out.push_back(to);
  return out;
}

TEST(House, ADeadLinkIsFound) {
  EXPECT_EQ(dead_links("[a](README.md) [b](gone.md#x) [c](https://x.org/y) [d](#e)\n```cpp\n[](int i)\n```\n", house),
            Findings{"gone.md"});
}

TEST(House, EveryLinkOfADocumentLeadsToAFile) {
  for (const auto& path : documents())
    for (const auto& to : dead_links(read(house / path), (house / path).parent_path()))
      ADD_FAILURE() << path << " links to " << to;
}

/// The anchors that a forge gives to the headings of a document.
std::set<std::string> anchors(const std::string& document) {
  static const std::regex heading("(?:^|\n)#+ ([^\n]+)");
  std::set<std::string> out;
  const auto text = std::regex_replace(document, std::regex("```[^]*?```"), "");
  for (std::sregex_iterator at(text.begin(), text.end(), heading), end; at != end; ++at) {
    std::string name;
    for (const char letter : (*at)[1].str()) {
      const auto c = static_cast<unsigned char>(letter);
      if (std::isalnum(c) || c == '-' || c == '_' || c > 127)
        name += static_cast<char>(std::tolower(c));
      else if (c == ' ')
        name += '-';
    }
    out.insert(name);
  }
  return out;
}

/// Links to a heading that is not there, of this document or of another one.
Findings dead_anchors(const std::string& document, const fs::path& folder) {
  static const std::regex link(R"(\]\(([^)#\s]*)#([^)\s]+)\))");
  const auto text = std::regex_replace(document, std::regex("```[^]*?```"), "");
  Findings out;
  for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
    const auto file = (*at)[1].str();
    if (file.find("://") != file.npos || !(file.empty() || file.ends_with(".md"))) continue;
    if (anchors(file.empty() ? document : read(folder / file)).count((*at)[2]) == 0)
      out.push_back(file + "#" + (*at)[2].str());
  }
  return out;
}

TEST(House, ALinkToAHeadingThatIsNotThereIsFound) {
  EXPECT_EQ(
      dead_anchors("# A b: `c`\n[x](#a-b-c) [y](#a-b) [z](README.md#the-promise) [u](README.md#promise)\n", house),
      (Findings{"#a-b", "README.md#promise"}));
}

TEST(House, EveryLinkToAHeadingLeadsThere) {
  for (const auto& path : documents())
    for (const auto& to : dead_anchors(read(house / path), (house / path).parent_path()))
      ADD_FAILURE() << path << " links to " << to;
}

/// The names in the first column of the tables below this heading.
std::set<std::string> rows_below(const std::string& document, const std::string& heading) {
  static const std::regex row("\n\\| `([^`]+)` \\|");
  const auto from = document.find("\n## " + heading + "\n");
  if (from == document.npos) return {};
  const auto section = document.substr(from, document.find("\n## ", from + 1) - from);
  std::set<std::string> out;
  for (std::sregex_iterator at(section.begin(), section.end(), row), end; at != end; ++at) out.insert((*at)[1]);
  return out;
}

template <class Enum>
std::set<std::string> names_of() {
  std::set<std::string> out;
  for (int i = 0; to_string(static_cast<Enum>(i)) != "?"; ++i) out.emplace(to_string(static_cast<Enum>(i)));
  return out;
}

TEST(House, ThePageForOperatorsHasEveryErrorReasonAndAlert) {
  const auto page = read(house / "docker/operating.md");
  EXPECT_EQ(rows_below(page, "What an error means"), names_of<tenure::Fault>());
  EXPECT_EQ(rows_below(page, "Why a tenure ended"), names_of<tenure::Reason>());
  const auto alerts = read(house / "docker/monitoring/alerts.yml");
  static const std::regex alert("- alert: (\\w+)");
  for (std::sregex_iterator at(alerts.begin(), alerts.end(), alert), end; at != end; ++at)
    EXPECT_NE(page.find("`" + (*at)[1].str() + "`"), page.npos) << (*at)[1];
}

/// The rights that scripts and headers tell, without the marks of comments.
std::vector<std::string> told_rights() {
  std::vector<std::string> out;
  for (const auto& path : files({"backends/postgres/sql"}, {".sql"})) {
    const auto text = read(house / path);
    static const std::regex grant("--   (grant [^\n]*;)");
    for (std::sregex_iterator at(text.begin(), text.end(), grant), end; at != end; ++at) out.push_back((*at)[1]);
  }
  const auto redis = read(house / "backends/redis/include/tenure/redis.hpp");
  static const std::regex acl(R"(ACL SETUSER u on >secret (.*)\n///\s+(\+[^\[]*) \[)");
  if (std::smatch found; std::regex_search(redis, found, acl)) out.push_back(found[1].str() + " " + found[2].str());
  const auto etcd = read(house / "backends/etcd/include/tenure/etcd.hpp");
  static const std::regex role("(etcdctl role [^\n]*)");
  if (std::smatch found; std::regex_search(etcd, found, role)) out.push_back(found[1]);
  return out;
}

TEST(House, ThePageForOperatorsHasEveryRight) {
  const auto page = read(house / "docker/operating.md");
  const auto rights = told_rights();
  EXPECT_EQ(rights.size(), 5u) << "three tables, Redis and etcd";
  for (const auto& right : rights) EXPECT_NE(page.find("`" + right + "`"), page.npos) << right;
}

TEST(House, EveryFileNamesItsLicenceFirst) {
  for (const auto& path : texts()) {
    const auto text = read(house / path);
    EXPECT_LT(text.substr(0, 200).find("SPDX-License-Identifier: Apache-2.0"), 100u) << path;
  }
}

/// The line below the licence says what a file is.
TEST(House, EveryFileSaysFirstWhatItIs) {
  std::size_t seen = 0;
  for (const auto& path : files({"core", "backends", "adapters", "tests", "examples"}, {".hpp", ".cpp"})) {
    ++seen;
    const auto lines = lines_of(read(house / path));
    EXPECT_TRUE(lines.size() > 1 && lines[1].starts_with("// "))
        << path << " does not say in its second line what it is";
  }
  EXPECT_GT(seen, 300u);
}

/// Spelt in halves, so that this file does not find itself.
TEST(House, NothingIsMarkedForLaterAndNoTestSleeps) {
  const std::regex later(std::string(R"(\b(TO)") + "DO|FIX" + "ME|HA" + "CK|XX" + R"(X)\b)");
  const std::regex sleeps(std::string(R"(\b(sleep)") + R"(_for|sleep)" + R"(_until|us)" + R"(leep|nano)" +
                          R"(sleep)\b)");
  for (const auto& path : texts()) {
    const auto text = read(house / path);
    EXPECT_FALSE(std::regex_search(text, later)) << path;
    const bool test = path.starts_with("tests/") && !path.starts_with("tests/house/") &&
                      !path.starts_with("tests/bench/") &&
                      path != "tests/core/time/clock_test.cpp" &&  // which tests ours
                      path != "tests/support/eventually.hpp" &&    // which waits for a condition between its sleeps
                      path != "tests/support/main.cpp";            // which measures how late a sleeper is
    const auto extension = fs::path(path).extension();
    const bool asleep =
        test && (extension == ".cpp" || extension == ".hpp") && std::regex_search(without_comments(text), sleeps);
    EXPECT_FALSE(asleep) << path;
  }
}

}  // namespace
