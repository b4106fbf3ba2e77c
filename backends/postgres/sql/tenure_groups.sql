-- SPDX-License-Identifier: Apache-2.0
-- The tables of groups: many elections in one process at the price of one. A row per process in tenure_sessions, and
-- a row per election in tenure_leads, made by its first leader. Delete no lead by hand: without its row an election is
-- free at once, though somebody leads. `tenure retire` removes those of elections that nobody joins any more; the row
-- with an empty name keeps the greatest of their tokens. Run this once as the tables' owner, then let the candidates'
-- role do no more than it needs:
--   grant select, insert, update, delete on tenure_sessions to candidates;
--   grant select, insert, update on tenure_leads to candidates;
-- Who retires elections needs the latter and delete on tenure_leads, and select on tenure_sessions.
-- Who only observes needs select on both. Names are bytes, since they need not be valid text in any encoding; to read
-- them:
--   select encode(l.grp, 'escape') as grp, encode(l.election, 'escape') as election, s.who, l.token,
--          l.released or s.ended as released, s.term_ms, s.written_at
--   from tenure_leads l left join tenure_sessions s on s.grp = l.grp and s.session = l.session
--   where l.election <> '';
-- Who owns the tables, and who may create in their schema, can run SQL as everybody who uses them. So let nobody else:
--   revoke create on schema public from public;
-- No index stands on what a renewal changes, and the sessions' pages are left nearly empty: so a renewal stays within
-- its page and leaves nothing for vacuum to do. Only while some transaction stays open for hours the server keeps every
-- version, and who looks for a key walks over all that had it: so a session takes another place now and then. A lead is
-- written when its leader changes, and no sooner.
create table if not exists tenure_sessions (
  grp bytea check (octet_length(grp) <= 200),
  session bigint,
  place bigint,
  beat bigint not null,
  ended boolean not null,
  who text not null check (octet_length(who) <= 1000),
  term_ms bigint not null,
  asked_ns bigint not null,
  written_at timestamptz not null,
  joined bigint not null,
  names bigint not null,
  weight bigint not null,
  most bigint not null,
  primary key (grp, session, place)
) with (fillfactor = 10);

-- The second key is no rule: it finds what changed since a look. It excludes, because no unique index may have what a
-- release changes: else a release would wait for the transactions that hold the lead FOR KEY SHARE by the strict fence,
-- and the renewal of all elections with it.
create table if not exists tenure_leads (
  grp bytea check (octet_length(grp) <= 200),
  election bytea check (octet_length(election) <= 200),
  token bigint not null,
  session bigint not null,
  released boolean not null,
  heir bigint,
  step_down_token bigint,
  step_down_by bytea check (octet_length(step_down_by) <= 1000),
  step_down_why bytea check (octet_length(step_down_why) <= 1000),
  changed xid8 not null,
  primary key (grp, election),
  exclude using btree (grp with =, changed with =, election with =)
) with (fillfactor = 70);
