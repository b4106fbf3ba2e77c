// SPDX-License-Identifier: Apache-2.0
// What users set: from a URL, and checked.
#pragma once
#include <string>

#include <tenure/kit/url.hpp>
#include <tenure/object.hpp>

namespace tenure::object {

/// Throws as from_url() does. It refuses everything in the query that it does not know.
Options from(Url url);

/// The same, with the region that the environment names where there is none. Throws std::invalid_argument naming the
/// field that can never work.
Options checked(Options options);

/// The object of an election: letters, digits and -._~/ alone, so that it stands in a URL as it is. Different elections
/// have different objects, whatever bytes are in their names. Throws as check_election() does.
std::string object_of(const Options& options, const std::string& election);

/// Where the server is. REQUIRES: the options are checked.
struct Server {
  bool tls{};
  std::string host{};    ///< Perhaps with a port.
  std::string name{};    ///< The host without a port, if server_at() read it.
  std::string folder{};  ///< What stands before an object's name: "/", or "/BUCKET/".
};
Server server_of(const Options& options);

/// Of a URL that has nothing but http or https, a host and perhaps a port. `what` names it in the
/// std::invalid_argument of any other.
Server server_at(const std::string& url, const std::string& what);

/// Empty if it is not set.
std::string variable(const char* name);

}  // namespace tenure::object
