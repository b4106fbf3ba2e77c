# SPDX-License-Identifier: Apache-2.0
# Runs the SQL of adapters/fence/README.md through another client, with names of a test in place of its own.
# usage: page_sql.py PAGE URL psycopg|jdbc|go WORK single|group NAME=VALUE...
# It prints "committed" or "refused", and exits with 77 where the client is missing (Debian: python3-psycopg2;
# libpostgresql-jdbc-java with a JDK; golang-github-lib-pq-dev with golang-go).
import os
import re
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

page, url, client, work, kind, *changes = sys.argv[1:]
transaction, of_a_group = re.findall(r"```sql\n(.*?)```", open(page, encoding="utf-8").read(), re.S)
if kind == "group":
    transaction = re.sub(r"^select .*\n", lambda _: of_a_group, transaction, flags=re.M)
new = {"-- your own statements": f"insert into {work} values (1);", **dict(change.split("=") for change in changes)}
for old in new:
    assert old in transaction, old
# In one pass: a new name may have an old one within.
transaction = re.sub("|".join(map(re.escape, new)), lambda found: new[found[0]], transaction)
statements = [one.strip() for one in re.sub(r"--.*", "", transaction).split(";") if one.strip()]


def by_jdbc():
    jar, at = "/usr/share/java/postgresql.jar", urlsplit(url)
    if not os.path.exists(jar) or not shutil.which("javac"):
        sys.exit(77)
    java = ["java", "-cp", jar, os.path.join(os.path.dirname(__file__), "page_sql.java"),
            f"jdbc:postgresql://{at.hostname}:{at.port}{at.path}", at.username, at.password]
    sys.exit(subprocess.run(java, input="\n".join(statements), text=True).returncode)


def by_go():
    if not os.path.exists("/usr/share/gocode/src/github.com/lib/pq") or not shutil.which("go"):
        sys.exit(77)
    # With Go's own cache, because to compile its library is most of the work.
    go = ["go", "run", os.path.join(os.path.dirname(__file__), "page_sql.go"), url + "?sslmode=disable"]
    where = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode"}
    sys.exit(subprocess.run(go, input="\n".join(statements), text=True, env=where).returncode)


def by_psycopg():
    try:
        import psycopg2 as psycopg
    except ImportError:
        try:
            import psycopg
        except ImportError:
            sys.exit(77)
    connection = psycopg.connect(url)
    connection.autocommit = True  # the page begins and commits
    cursor = connection.cursor()
    for statement in statements:
        if "local transaction_timeout" in statement and connection.info.server_version < 170000:
            continue
        cursor.execute(statement)
        if "for key share" in statement and cursor.fetchone() is None:
            cursor.execute("rollback")
            print("refused")
            sys.exit(0)
    print("committed")


{"psycopg": by_psycopg, "jdbc": by_jdbc, "go": by_go}[client]()
