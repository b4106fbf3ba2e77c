// SPDX-License-Identifier: Apache-2.0
// Keys and values in etcd's JSON. libcurl has this too, but exports none of it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tenure::etcd {

std::string base64(std::string_view bytes);

/// Nothing of a text that base64() does not make.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tenure::etcd
