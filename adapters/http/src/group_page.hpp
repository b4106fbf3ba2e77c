// SPDX-License-Identifier: Apache-2.0
// The page for people about many elections.
#pragma once
#include "html.hpp"

namespace tenure::http {

inline constexpr Page group_page{R"css(form { display: flex; gap: .5rem; }
input, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--dim); border-radius: .4rem;
  padding: .3rem .6rem; min-width: 0; }
input { flex: 1; }
#found { margin: .6rem 0 0; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; table-layout: fixed; }
th, td { text-align: left; padding: .3rem .5rem .3rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 500; } th:last-child { width: 10rem; } td:last-child { font-variant-numeric: tabular-nums; }
#leaderless { border-color: var(--bad); } #others:empty { display: none; }
ol { list-style: none; margin: 0; padding: 0; } li { padding: .3rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
@media (max-width: 30rem) { th:last-child { width: 8.5rem; } td:last-child { font-size: .85rem; } }
)css",
                                 R"html(<section>
<h1 id="group">tenure</h1>
<p id="who" class="none" aria-live="polite"></p>
<dl id="facts"></dl>
</section>
<section id="leaderless" hidden>
<h2>Without a leader</h2>
<ol id="unled"></ol>
<p id="others"></p>
</section>
<section>
<h2><label for="name">Who leads an election?</label></h2>
<form id="ask"><input id="name" required autocapitalize="off" autocomplete="off" spellcheck="false"><button>ask</button></form>
<p id="found" aria-live="polite" hidden></p>
</section>
<section>
<h2>What this process leads, by name</h2>
<table><thead><tr><th>election</th><th>token</th></tr></thead><tbody id="led"></tbody></table>
<p><button id="more" hidden>more</button></p>
</section>
)html",
                                 R"js(const get = async path => (await fetch(path, { cache: "no-store" })).json();
let pages = 1, good = performance.now();

function took(all) {
  const s = all[0];
  tell("group", "group " + s.group + (s.self.name ? ", seen by " + s.self.name : ""));
  tell("who", "leads " + s.led + " of the " + s.joined + " elections that it has joined");
  at("who").className = s.led ? "self" : "none";
  at("facts").replaceChildren();
  fact("session", s.session.remaining_ms > 0 ? (s.session.remaining_ms / 1000).toFixed(1) + " s left of its lease" : "none");
  fact("rides out", "an outage of " + (s.session.rides_out_ms / 1000).toFixed(1) + " s");
  fact("stalled", s.stalled ? "the work of " + s.stalled : "");
  fact("health", s.health.healthy ? "healthy" : s.health.why);
  at("leaderless").hidden = !s.unled;
  at("unled").replaceChildren(...s.leaderless.map(name => one("li", name)));
  tell("others", s.unled > s.leaderless.length ? "and " + (s.unled - s.leaderless.length) + " more" : "");
  at("led").replaceChildren(...all.flatMap(page => page.leads).map(lead => {
    const row = one("tr");
    row.append(one("td", lead.election), one("td", lead.token || "none"));
    return row;
  }));
  at("more").hidden = !all[all.length - 1].next;
  document.title = plain((s.unled ? s.unled + " without a leader \u00b7 " : "") + s.led + " of " + s.joined + " \u00b7 " + s.group);
}

async function look() {
  try {
    const all = [];
    for (let next = "status"; next && all.length < pages; next = all[all.length - 1].next) all.push(await get(next));
    took(all);
    good = performance.now();
  } catch { }
  at("trouble").hidden = performance.now() - good < 6000;
  tell("trouble", "The process does not answer: what stands here is old.");
  setTimeout(look, 2000);
}

at("more").onclick = () => { ++pages; };
at("ask").onsubmit = async event => {
  event.preventDefault();
  const name = at("name").value;
  at("found").hidden = false;
  tell("found", "asking");
  try {
    const said = await get("leader?election=" + encodeURIComponent(name)), l = said.leader;
    tell("found", said.error ? said.error.message : name + ": " + (said.leading ? "this process leads" + (l.token ? ", token " + l.token : "")
      : l ? (l.name || "somebody without a name") + " leads" + (l.address ? " at " + l.address : "") + (l.version ? ", tenure " + l.version : "") + (l.token ? ", token " + l.token : "")
      : "nobody is known to lead"));
  } catch { tell("found", "The process does not answer."); }
};
tell("who", "asking");
look();
)js"};

}  // namespace tenure::http
