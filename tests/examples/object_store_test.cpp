// SPDX-License-Identifier: Apache-2.0
// Goal: the example of a store that a user adds keeps the contract of all stores. Method: the contract suite.
#include <object_store.hpp>

#include <filesystem>
#include <string>
#include <tenure/kit/names.hpp>
#include <tenure/lock_table.hpp>

#include "contract_suite.hpp"

namespace tenure::contract {
namespace {

namespace fs = std::filesystem;

class Bucket {
 public:
  Bucket() {
    std::string pattern = (fs::temp_directory_path() / "tenure-objects.XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Bucket() { fs::remove_all(directory_); }
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  std::shared_ptr<ObjectStore> object(const std::string& name) const {
    return std::make_shared<ObjectStore>(directory_ / path_of(name));
  }

 private:
  /// Two levels, because a name may be longer than a file's may.
  static fs::path path_of(const std::string& name) {
    std::string hex;
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      hex += "0123456789abcdef"[byte / 16], hex += "0123456789abcdef"[byte % 16];
    }
    return fs::path(hex.substr(0, 200)) / ("_" + hex.substr(std::min<std::size_t>(200, hex.size())));
  }

  fs::path directory_;
};

class Objects final : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    check_election(election);
    return lock_table(store(election), election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override { return bucket_.object(election); }
  Timing short_timing() const override { return short_terms_of(milliseconds(500)); }
  bool pushes() const override { return false; }
  bool refused_may_have_stood() const override { return true; }

 private:
  Bucket bucket_;
};

const auto objects = testing::Values(Subject{"objects", [] { return std::make_unique<Objects>(); }});

INSTANTIATE_TEST_SUITE_P(example, BackendContract, objects, name_of);
INSTANTIATE_TEST_SUITE_P(example, StoreContract, objects, name_of);

}  // namespace
}  // namespace tenure::contract
