// SPDX-License-Identifier: Apache-2.0
// Goal: a directory keeps the contract. Method: the suite that all stores share.
#include <tenure/file.hpp>

#include "contract_suite.hpp"
#include "support.hpp"

namespace tenure::contract {
namespace {

class File final : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return file::open(base_, election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override { return file::store(base_, election); }

  Timing short_timing() const override { return short_terms_of(milliseconds(500)); }
  bool names_releases() const override { return false; }
  bool one_clock() const override { return true; }
  bool refused_may_have_stood() const override { return true; }

 private:
  file::Scratch base_;
};

const auto subject = testing::Values(Subject{"directory", [] { return std::make_unique<File>(); }});

INSTANTIATE_TEST_SUITE_P(file, BackendContract, subject, name_of);
INSTANTIATE_TEST_SUITE_P(file, StoreContract, subject, name_of);

}  // namespace
}  // namespace tenure::contract
