#!/usr/bin/env python3
"""Measures Sluice against the yardsticks beside this file, as ratios taken in one run.

The server is pinned to one core and the load to another; runs of ours and of the yardstick take turns; medians are compared.
CPU per message is compared rather than messages per second: on a shared machine rates swing, CPU per message hardly.
"""

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path

import fanning
import loading
import peers
import rows
import steering

# Those behind the first need programs that the floor cannot stand in for.
BENCHES = (rows.Bench, fanning.Fanning, loading.Loading, steering.Steering)
ROWS = {row.__name__: (bench, row) for bench in BENCHES for row in bench.ROWS}


def arguments():
    parser = argparse.ArgumentParser(prog="deploy/bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = ", ".join(ROWS)
    parser.add_argument("--sluice", metavar="BINARY", help="the binary to measure")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer runs: some minutes, less certain")
    parser.add_argument("--only", action="append", metavar="ROW", help=f"only this row; may be given again: {names}")
    parser.add_argument("--json", metavar="FILE", help="also writes every result to FILE")
    parser.add_argument("--self-check", action="store_true", help="measures the floor against itself: ratios must be near 1")
    return parser.parse_args()


def line(result):
    detail = ""
    if result.yardstick is not None:
        detail = f"{result.ours:.2f} : {result.yardstick:.2f} {result.measure}"
    notes = "  ".join(f"{name} {value:.4g}" for name, value in result.notes.items())
    sign = "≤" if result.at_most else "≥"
    verdict = "reached" if result.reached else "SHORT"
    return f"{result.name:<42} {result.value:>8.3f} {result.unit:<3} {sign} {result.target:<6g} {verdict:<8} {detail}  {notes}".rstrip()


def main():
    options = arguments()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("deploy/bench: two cores are needed, one for the server and one for the load")
    if not options.self_check and not (options.sluice and os.access(options.sluice, os.X_OK)):
        sys.exit(f"deploy/bench: no binary at {options.sluice}")
    # The floor can stand in for the gateway, and for nothing else.
    wanted = options.only or [row.__name__ for bench in (BENCHES[:1] if options.self_check else BENCHES) for row in bench.ROWS]
    for name in wanted:
        if name not in ROWS:
            sys.exit(f"deploy/bench: no row '{name}'; there are {', '.join(ROWS)}")

    peers.raise_descriptor_limit()
    peers.build()
    peers.Sluice.binary = options.sluice
    size = rows.QUICK if options.quick else rows.FULL
    if options.sluice:
        loading.Loading.programs = steering.Steering.programs = Path(options.sluice).resolve().parent
    benches = {kind: kind(size, stand_in=options.self_check) for kind in BENCHES}
    began = time.monotonic()
    results, failures = [], []
    for name in wanted:
        kind, row = ROWS[name]
        try:
            for result in row(benches[kind]):
                print(line(result), flush=True)
                results.append(result)
        except peers.MeasurementFailed as failure:
            print(f"{name:<42} not measured: {failure}", flush=True)
            failures.append({"row": name, "reason": str(failure)})

    reached = sum(result.reached for result in results)
    seconds = time.monotonic() - began
    print(f"{reached} of {len(results)} targets reached, {len(failures)} rows not measured to their end, {seconds:.0f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            entries = [{**dataclasses.asdict(result), "reached": result.reached} for result in results]
            json.dump({"quick": options.quick, "results": entries, "failures": failures}, file, indent=2)
    # A target that was missed is a finding, not an error; a row that could not be measured is one.
    if failures and not options.self_check:
        sys.exit(1)


if __name__ == "__main__":
    main()
