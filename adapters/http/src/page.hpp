// SPDX-License-Identifier: Apache-2.0
// The page for people about one election.
#pragma once
#include "html.hpp"

namespace tenure::http {

inline constexpr Page page{
    R"css(.track { height: .9rem; border-radius: .45rem; background: var(--line); overflow: hidden; margin: .75rem 0 .25rem; }
#bar { height: 100%; width: 0; background: var(--none); }
#bar.self { background: var(--self); } #bar.other { background: var(--other); }
#left { color: var(--dim); font-variant-numeric: tabular-nums; }
#line { display: flex; height: 1.4rem; border-radius: .4rem; overflow: hidden; background: var(--line); }
#line i { min-width: 2px; } #line i + i { border-left: 1px solid var(--card); }
#line .self, .key .self { background: var(--self); } #line .other, .key .other { background: var(--other); }
#line .none, .key .none { background: var(--none); opacity: .45; }
.ends, .key { display: flex; justify-content: space-between; color: var(--dim); font-size: .85rem; margin: .2rem 0 .6rem; }
.key { justify-content: start; flex-wrap: wrap; gap: 0 1rem; }
.key b { display: inline-block; width: .7em; height: .7em; border-radius: .15em; margin-right: .4em; }
ol { list-style: none; margin: 0; padding: 0; }
li { display: grid; grid-template-columns: 6.5rem 1fr; gap: .75rem; padding: .3rem 0; border-top: 1px solid var(--line); }
li time { color: var(--dim); font-variant-numeric: tabular-nums; } li span { overflow-wrap: anywhere; }
)css",
    R"html(<section>
<h1 id="election">tenure</h1>
<p id="who" class="none" aria-live="polite"></p>
<div class="track" id="track" role="progressbar" aria-label="what is left of the lease" aria-valuemin="0"><div id="bar"></div></div>
<div id="left"></div>
<dl id="facts"></dl>
</section>
<section>
<h2>History, as this process saw it</h2>
<div id="line" aria-hidden="true"></div>
<div class="ends"><span id="from"></span><span>now</span></div>
<div class="key" aria-hidden="true"><span><b class="self"></b>this process</span>
<span><b class="other"></b>another one</span><span><b class="none"></b>nobody known</span></div>
<ol id="list"></ol>
</section>
)html",
    R"js(let status = null, seen = 0, seenAt = 0, full = 0, fullOf = null, history = [];
const day = ms => new Date(ms).toLocaleString();
const clock = ms => new Date(ms).toDateString() === new Date(Date.now()).toDateString() ? new Date(ms).toLocaleTimeString()
  : new Date(ms).toLocaleString([], { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const named = l => l.name || (l.self ? "this process" : "somebody without a name");
function kind() { return !status || !status.leader || left() <= 0 ? "none" : status.leader.self ? "self" : "other"; }
function left() { return status && status.leader ? Math.max(0, status.leader.remaining_ms - (performance.now() - seen)) : 0; }

function took(next) {
  status = next;
  seen = performance.now();
  seenAt = Date.now();
  if (next.history) history = next.history;
  const l = next.leader;
  if (!l || fullOf !== l.token) { full = 0; fullOf = l ? l.token : null; }
  if (l) full = Math.max(full, l.remaining_ms, l.self ? l.remaining_ms + (next.since_granted_ms || 0) : 0);
  at("facts").replaceChildren();
  tell("election", "election " + next.election + (next.self.name ? ", seen by " + next.self.name : ""));
  if (l) {
    fact("since", l.since_unix_ms ? day(l.since_unix_ms) : "before this process looked");
    fact("token", l.token);
    fact("address", l.address);
    fact("tenure", l.version);
  }
  if (l && l.self) fact("rides out", "an outage of " + (next.rides_out_ms / 1000).toFixed(1) + " s");
  fact("this process", { leading: "leads", following: "follows", ended: "takes part no more" }[next.self.state]);
  fact("health", !next.health.healthy ? next.health.why : next.health.stalled ? "its work stalled" : "healthy");
  const gone = Object.entries(next.counts.ousted).filter(([, n]) => n).map(([why, n]) => n + " " + why.replace("_", " "));
  fact("tenures", next.counts.elected + " here" + (gone.length ? "; ended: " + gone.join(", ") : ""));
  drawHistory();
  draw();
}

function said(c) {
  if (c.what === "elected") return "this process was elected" + (c.token ? ", token " + c.token : "");
  if (c.what === "ousted") return "its tenure ended: " + (c.reason || "").replace("_", " ");
  if (c.what === "incumbent") return (c.name || "somebody") + " leads" + (c.token ? ", token " + c.token : "");
  return c.what === "vacant" ? "nobody is known to lead" : "this process takes part no more";
}

function drawHistory() {
  const kinds = { elected: "self", incumbent: "other" }, now = Date.now();
  const first = history.length ? history[0].unix_ms : now;
  at("line").replaceChildren(...history.map((c, i) => {
    const end = i + 1 < history.length ? history[i + 1].unix_ms : now;
    const part = one("i", undefined, kinds[c.what] || "none");
    part.title = plain(day(c.unix_ms) + ": " + said(c));
    part.style.flexGrow = Math.max(0, end - c.unix_ms) + 1;
    return part;
  }));
  tell("from", history.length ? clock(first) : "nothing yet");
  at("list").replaceChildren(...history.slice().reverse().map(c => {
    const row = one("li"), time = one("time", clock(c.unix_ms));
    time.title = day(c.unix_ms);
    row.append(time, one("span", said(c)));
    return row;
  }));
}

function draw() {
  const k = kind(), ms = left(), l = status && status.leader;
  at("who").className = at("bar").className = k;
  if (status) tell("who", k !== "none" ? named(l) + " leads" : l ? "the lease has ended" : "nobody is known to lead");
  at("bar").style.width = (full ? 100 * ms / full : 0) + "%";
  at("track").setAttribute("aria-valuemax", Math.round(full / 1000));
  at("track").setAttribute("aria-valuenow", Math.round(ms / 1000));
  tell("left", ms > 0 ? (ms / 1000).toFixed(1) + " s left of the lease, unless it is renewed" : "");
  const old = performance.now() - seen > 4000;
  at("trouble").hidden = !old;
  if (old) tell("trouble", status ? "No news since " + clock(seenAt) + ": what stands here is old."
    : "The process does not answer, or has as many readers as it takes.");
  const title = !status ? "tenure" : (old ? "no news" : k !== "none" ? named(l) : "nobody") + " · " + status.election;
  if (document.title !== plain(title)) document.title = plain(title);
}

const source = () => {
  const events = new EventSource("events");
  events.addEventListener("status", e => took(JSON.parse(e.data)));
  events.addEventListener("change", e => {
    const c = JSON.parse(e.data);
    if (!history.some(h => h.id === c.id)) history = history.concat(c).slice(-100);
  });
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) setTimeout(source, 5000); };
};
tell("who", "asking…");
source();
(function move() { draw(); requestAnimationFrame(move); })();
setInterval(draw, 1000);  // A tab in the background has no frames, but its title is seen.
)js"};

}  // namespace tenure::http
