#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hand-over and crash of several electors, measured the same way in one run.

Two processes contend; the leader is told to leave (or killed); the clock stops when the other one's line arrives.
Each peer does what its own documentation shows, with the settings named in its row.

peers.py [--runs 30] [--crashes 5] NAME=COMMAND...        COMMAND prints a line with "leads" when it leads, and
                                                          hands over on SIGTERM; {n} in it is another number each time
Others run if their variable is set: ETCD (host:port), REDIS (its URL), PSQL (a connection string).
"""
import argparse
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

REDIS_LOCK = """
import redis, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
lock = redis.Redis.from_url("{url}").lock("peers", timeout=10)
lock.acquire()
print("leads", flush=True)
signal.sigwait([signal.SIGTERM])
lock.release()
"""

TOOZ_LOCK = """
import signal
from tooz import coordination
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
coordinator = coordination.get_coordinator("{url}", b"{n}")
coordinator.start(start_heart=True)
lock = coordinator.get_lock(b"peers")
lock.acquire()
print("leads", flush=True)
signal.sigwait([signal.SIGTERM])
lock.release()
"""

# The upsert that such lock tables share, with the example's term 8 s, renewed each 4 s and tried each 2 s. Nothing is
# released: leaving is dying.
UPSERT = """
import subprocess, time
psql = subprocess.Popen(["psql", "-qAtX", "{psql}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
leads = False
while True:
    psql.stdin.write('''insert into peers_lock values ('k', '{n}', now() + interval '8 s')
        on conflict (key) do update set leader = excluded.leader, expires = excluded.expires
        where peers_lock.leader = excluded.leader or peers_lock.expires < now();
        select leader from peers_lock where key = 'k';\\n''')
    psql.stdin.flush()
    mine = psql.stdout.readline().strip() == "{n}"
    if mine and not leads:
        print("leads", flush=True)
    leads = mine
    time.sleep(4 if leads else 2)
"""


class Contender:
    count = 0

    def __init__(self, command):
        Contender.count += 1
        command = [part.replace("{n}", str(Contender.count)) for part in command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                        start_new_session=True)

    def await_lead(self):
        for line in self.process.stdout:
            if self.leads(line):
                return time.monotonic()
        raise RuntimeError("%s ended without leading" % self.process.args)

    def leads(self, line):
        # etcdctl prints the key and the proposal, others the word.
        return "leads" in line or line.startswith("peers/")

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def end(self):
        try:
            self.signal(signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def changes(command, leave, runs, settle):
    took = []
    leader = Contender(command)
    follower = None
    try:
        leader.await_lead()
        for _ in range(runs):
            follower = Contender(command)
            time.sleep(settle)
            left = time.monotonic()
            leader.signal(leave)
            took.append(follower.await_lead() - left)
            leader.end()
            leader, follower = follower, None
    finally:
        leader.end()
        if follower:
            follower.end()
    return took


def settle(command):
    """Seconds that a follower has to stand by. One of Kafka joins its group first."""
    return 5 if any("=kafka:" in part for part in command) else 0.5


def row(name, figure, took):
    print("%-44s %-10s %4d %10.2f %10.2f %10.2f" % (name, figure, len(took), min(took) * 1e3,
                                                   statistics.median(took) * 1e3, max(took) * 1e3), flush=True)


def peers():
    etcd, redis, psql = (os.environ.get(name) for name in ("ETCD", "REDIS", "PSQL"))
    if etcd:
        etcdctl = ["env", "ETCDCTL_API=3", "etcdctl", "--endpoints", etcd]
        yield "etcdctl elect (TTL 60 s)", etcdctl + ["elect", "peers", "{n}"], signal.SIGINT, None
        yield "etcdctl lock (TTL 10 s)", etcdctl + ["lock", "--ttl", "10", "peers"], signal.SIGINT, signal.SIGKILL
    if redis:
        yield ("python3-redis Lock (timeout 10 s)", [sys.executable, "-c", REDIS_LOCK.replace("{url}", redis)],
               signal.SIGTERM, signal.SIGKILL)
        yield ("python3-tooz, redis (its defaults)",
               [sys.executable, "-c", TOOZ_LOCK.replace("{url}", redis)], signal.SIGTERM, signal.SIGKILL)
    if psql:
        subprocess.run(["psql", "-qX", psql, "-c", "drop table if exists peers_lock; create table peers_lock "
                        "(key text primary key, leader text, expires timestamptz)"], check=True)
        yield ("upsert loop, psql (term 8, renew 4, retry 2)",
               [sys.executable, "-c", UPSERT.replace("{psql}", psql)], signal.SIGKILL, signal.SIGKILL)
    lock = os.path.join(tempfile.gettempdir(), "peers-%d.lock" % os.getpid())
    yield "flock(1)", ["flock", lock, "sh", "-c", "echo leads; exec sleep 1000"], signal.SIGTERM, signal.SIGKILL


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=30)
    arguments.add_argument("--crashes", type=int, default=5)
    arguments.add_argument("ours", nargs="*", metavar="NAME=COMMAND")
    arguments = arguments.parse_args()
    all_peers = [(name, shlex.split(command), signal.SIGTERM, signal.SIGKILL)
                 for name, command in (ours.split("=", 1) for ours in arguments.ours)]
    all_peers += peers()
    print("%-44s %-10s %4s %10s %10s %10s" % ("", "", "n", "min", "median", "max  ms"))
    for name, command, leave, _ in all_peers:
        runs = arguments.runs if leave != signal.SIGKILL else min(arguments.runs, 5)
        row(name, "hand-over", changes(command, leave, runs, settle(command)))
    for name, command, _, kill in all_peers:
        if kill and arguments.crashes:
            row(name, "crash", changes(command, kill, arguments.crashes, settle(command)))


if __name__ == "__main__":
    main()
