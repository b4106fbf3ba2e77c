#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Draws what `tests/bench/many` printed: requests by the number of elections, and by the number of processes.
# Needs gnuplot (Debian: apt install gnuplot-nox).
#
# many_plot.py OUTPUT_OF_MANY PICTURE.svg
import subprocess
import sys


def rows(path):
    """(store, form, elections, processes, requests/s) of each line of the tables of rest."""
    store = ""
    for line in open(path):
        words = line.split()
        if len(words) == 1 and words[0] in ("postgres", "redis", "kafka"):
            store = words[0]
        elif len(words) == 8 and words[0] in ("Elections", "one-by-one"):
            yield store, words[0], int(words[1]), int(words[2]), float(words[4])


def block(points):
    return "".join(f"{x} {y}\n" for x, y in sorted(points)) + "e\n"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: many_plot.py OUTPUT_OF_MANY PICTURE.svg")
    seen = list(rows(sys.argv[1]))
    if not seen:
        sys.exit(f"{sys.argv[1]}: it has no table of rest; run tests/bench/many --figures rest,one-by-one")
    least = min(processes for _, _, _, processes, _ in seen)
    by_elections, by_processes = {}, {}
    for store, form, elections, processes, requests in seen:
        if processes == least:
            by_elections.setdefault(f"{store}, {form}", set()).add((elections, requests))
    sizes = {elections for _, _, elections, processes, _ in seen if processes > least}
    for store, form, elections, processes, requests in seen:
        if form == "Elections" and elections in sizes:
            by_processes.setdefault(f"{store}, {elections} elections", set()).add((processes, requests))
    script = f"""set terminal svg size 900,360 font "sans,12" background "white"
set output "{sys.argv[2]}"
set multiplot layout 1,2
set key top left
set grid
set ylabel "requests/s at the server"
set xlabel "elections, shared by {least} processes"
set logscale xy
set yrange [0.5:1000]
"""
    for curves, more in ((by_elections, ""), (by_processes, 'unset logscale\nset yrange [0:*]\nset xlabel "processes"\n')):
        if curves:
            script += more + "plot " + ", ".join(f'"-" with linespoints title "{name}"' for name in curves) + "\n"
            script += "".join(block(points) for points in curves.values())
    try:
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
    except FileNotFoundError:
        sys.exit("gnuplot is missing; Debian: apt install gnuplot-nox")


main()
