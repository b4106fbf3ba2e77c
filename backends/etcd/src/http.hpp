// SPDX-License-Identifier: Apache-2.0
// One connection to one member: its questions are POSTs of JSON, and the answer to a watch comes in lines.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include <tenure/etcd.hpp>
#include <tenure/result.hpp>

#include "web/http.hpp"

namespace tenure::etcd {

using web::Answer;

/// A POST of JSON. `token`: the value of the header Authorization. It may be empty.
web::Request post(std::string path, std::string body, const std::string& token = {});

class Http final : public web::Http {
 public:
  /// `name`: "etcd 127.0.0.1:2379", for messages.
  Http(const Options& options, const Address& to, std::string name);

  /// Begins a question whose answer comes in lines and has no end.
  std::optional<Error> begin_lines(const web::Request& request);
  /// Returns the next line that has come, or nothing: then wait for descriptor(). It does not block.
  Result<std::optional<std::string>> next_line();

 private:
  std::size_t taken_{};  ///< How many bytes of the answer were returned as lines.
};

}  // namespace tenure::etcd
