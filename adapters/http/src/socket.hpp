// SPDX-License-Identifier: Apache-2.0
// The socket that a server listens at, and its address.
#pragma once
#include <string>

#include <tenure/kit/descriptor.hpp>

namespace tenure::http {

/// Listens at an address. Throws std::invalid_argument or std::system_error; both name the address.
Descriptor listen_at(const std::string& address);

/// Where a socket listens, as listen_at() takes it.
std::string address_of(int fd);

}  // namespace tenure::http
