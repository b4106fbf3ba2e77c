// SPDX-License-Identifier: Apache-2.0
// What the pages for people have in common. They load nothing from elsewhere, and show foreign text as text only.
#pragma once
#include <string_view>

#include <tenure/http.hpp>

namespace tenure::http {

/// A page. In its text @NONCE@ stands for a text that is new with each answer, @STYLE@ and @SCRIPT@ for what all pages
/// have. Its Content-Security-Policy allows it its own style and script, and what this process tells. Nothing else.
Response html(std::string_view page);

}  // namespace tenure::http
