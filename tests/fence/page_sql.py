# SPDX-License-Identifier: Apache-2.0
# Runs the SQL of adapters/fence/README.md through psycopg, with names of a test in place of its own.
# usage: page_sql.py PAGE CONNINFO WORK single|group NAME=VALUE...
# It prints "committed" or "refused", and exits with 77 where psycopg is missing (Debian: python3-psycopg2).
import re
import sys

try:
    import psycopg2 as psycopg
except ImportError:
    try:
        import psycopg
    except ImportError:
        sys.exit(77)

page, conninfo, work, kind, *changes = sys.argv[1:]
blocks = re.findall(r"^```\w*\n(.*?)^```", open(page, encoding="utf-8").read(), re.S | re.M)
(transaction,) = [block for block in blocks if block.startswith("begin;")]
(of_a_group,) = [block for block in blocks if block.startswith("select ")]
if kind == "group":
    transaction = re.sub(r"^select .*\n", lambda _: of_a_group, transaction, flags=re.M)
transaction = transaction.replace("-- your own statements", f"insert into {work} values (1);")
for change in changes:
    old, new = change.split("=")
    assert old in transaction, old
    transaction = transaction.replace(old, new)

connection = psycopg.connect(conninfo)
connection.autocommit = True  # the page begins and commits
cursor = connection.cursor()
for statement in re.sub(r"--.*", "", transaction).split(";"):
    if not statement.strip() or ("transaction_timeout" in statement.replace("idle_in_transaction", "")
                                 and connection.info.server_version < 170000):
        continue
    cursor.execute(statement)
    if "for key share" in statement and cursor.fetchone() is None:
        cursor.execute("rollback")
        print("refused")
        sys.exit(0)
print("committed")
