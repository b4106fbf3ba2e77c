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
transaction, of_a_group = re.findall(r"```sql\n(.*?)```", open(page, encoding="utf-8").read(), re.S)
if kind == "group":
    transaction = re.sub(r"^select .*\n", lambda _: of_a_group, transaction, flags=re.M)
new = {"-- your own statements": f"insert into {work} values (1);", **dict(change.split("=") for change in changes)}
for old in new:
    assert old in transaction, old
# In one pass: a new name may have an old one within.
transaction = re.sub("|".join(map(re.escape, new)), lambda found: new[found[0]], transaction)

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
