-- SPDX-License-Identifier: Apache-2.0
-- One row per election, made by its first leader. Delete none: without its row an election is free at once, though
-- somebody leads. Run this once as the table's owner, then let the candidates' role do no more than it needs:
--   grant select, insert, update on tenure_elections to candidates;
-- Who only observes needs select. Elections are bytes, since they need not be valid text in any encoding; to read them:
--   select encode(election, 'escape') as election, who, token, released, term_ms, written_at from tenure_elections;
-- Who owns the table, and who may create in its schema, can run SQL as everybody who uses it. So let nobody else:
--   revoke create on schema public from public;
-- No index stands on what a renewal changes, and pages are left nearly empty: so a renewal stays within its page and
-- leaves nothing for vacuum to do. The last key is the strict fence's: a claim writes another token, and so waits for
-- the transactions that hold the row FOR KEY SHARE. To a table that stands without it, its owner adds it by
--   create unique index on tenure_elections (election, token);
create table if not exists tenure_elections (
  election bytea primary key check (octet_length(election) <= 200),
  token bigint not null,
  beat bigint not null,
  who text not null check (octet_length(who) <= 1000),
  released boolean not null,
  term_ms bigint not null,
  asked_ns bigint not null,
  written_at timestamptz not null,
  step_down_token bigint,
  step_down_by bytea check (octet_length(step_down_by) <= 1000),
  step_down_why bytea check (octet_length(step_down_why) <= 1000),
  unique (election, token)
) with (fillfactor = 10);
