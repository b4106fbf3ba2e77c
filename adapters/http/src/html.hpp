// SPDX-License-Identifier: Apache-2.0
// What the pages for people have in common. They load nothing from elsewhere, and show foreign text as text only.
#pragma once
#include <string_view>

#include <tenure/http.hpp>

namespace tenure::http {

/// What one page has of its own.
struct Page {
  std::string_view style, main, script;
};

/// Its Content-Security-Policy allows it its own style and script, by a text that is new with each answer, and what
/// this process tells. Nothing else.
Response html(const Page& page);

}  // namespace tenure::http
