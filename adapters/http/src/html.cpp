// SPDX-License-Identifier: Apache-2.0
// The style and the script of the pages for people.
#include "html.hpp"

#include <string>

#include <tenure/kit/names.hpp>

namespace tenure::http {
namespace {

constexpr std::string_view style = R"css(
:root { color-scheme: light dark; --back: #f7f7f5; --card: #fff; --text: #1c1f23; --dim: #5f6770; --line: #dcdfe3;
  --self: #15803d; --other: #2563eb; --none: #9aa1a9; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1d2125; --text: #e8eaed; --dim: #a0a8b0;
  --line: #343a40; --self: #4ade80; --other: #7aa7ff; --none: #5c646c; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 44rem; margin: 0 auto; display: grid; gap: 1rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1rem 1.25rem; }
a { color: var(--other); }
h1 { font-size: 1rem; margin: 0; color: var(--dim); font-weight: 500; overflow-wrap: anywhere; }
h2 { font-size: .95rem; margin: 0 0 .5rem; color: var(--dim); font-weight: 500; }
#who { font-size: clamp(1.4rem, 6vw, 2rem); font-weight: 650; line-height: 1.25; margin: .25rem 0; overflow-wrap: anywhere; }
#who.self { color: var(--self); } #who.other { color: var(--other); } #who.none { color: var(--dim); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .9rem; margin: .75rem 0 0; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
#trouble { border-color: var(--bad); color: var(--bad); } [hidden] { display: none; }
)css";

constexpr std::string_view script = R"js(
"use strict";
const at = id => document.getElementById(id);
// What controls a terminal or the order of text is shown as a mark: a name could show other text than it is.
const plain = text => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
const tell = (id, text) => { text = plain(text); if (at(id).textContent !== text) at(id).textContent = text; };
const one = (tag, text, kind) => {
  const out = document.createElement(tag);
  if (text !== undefined) out.textContent = plain(text);
  if (kind) out.className = kind;
  return out;
};
const fact = (name, text) => { if (text) at("facts").append(one("dt", name), one("dd", text)); };
)js";

std::string whole(const Page& page, const std::string& nonce) {
  std::string out = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tenure</title>
<link rel="icon" href="data:,">
)html";
  const auto add = [&out](auto... parts) { (out.append(parts), ...); };
  add("<style nonce=\"", nonce, "\">", style, page.style, "</style>\n</head>\n<body>\n<main>\n");
  add("<section id=\"trouble\" role=\"alert\" hidden></section>\n", page.main, "</main>\n");
  add("<noscript><section>This page needs its own script. <a href=\"status\">Its status</a> says the same.",
      "</section></noscript>\n");
  add("<script nonce=\"", nonce, "\">", script, page.script, "</script>\n</body>\n</html>\n");
  return out;
}

}  // namespace

Response html(const Page& page) {
  const auto nonce = draw_incarnation();
  Response out{.status = 200, .type = "text/html; charset=utf-8", .body = whole(page, nonce)};
  out.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
          "'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  out.headers.emplace_back("Referrer-Policy", "no-referrer");
  return out;
}

}  // namespace tenure::http
