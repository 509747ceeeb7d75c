"""Real processes under kill -9, cut connections, a full disk, hostile sockets, wrong clocks and a lost database."""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
import traceback

from support.report import Budget, Report, Scenario

# Where each is, and its share of the time; what is not given has the least that shows anything.
SCENARIOS = {
    "kill_server": ("torture.kill_server", 0.22),
    "kill_client": ("torture.kill_client", 0.18),
    "cut_network": ("torture.cut_network", 0.18),
    "full_disk": ("torture.full_disk", 0.08),
    "hostile_sockets": ("attacks.hostile_sockets", 0.10),
    "many_connections": ("attacks.many_connections", 0.10),
    "neighbours": ("attacks.neighbours", 0.14),
    "drain": ("torture.drain", 0.10),
    "clocks": ("torture.clocks", 0.04),
    "cluster": ("cluster.killed_nodes", 0.22),
    "standby": ("cluster.standby", 0.16),
}


def run(name: str, seconds: float, seed: str) -> Report:
    report = Report(name)
    began = time.monotonic()
    scenario: Scenario = importlib.import_module(SCENARIOS[name][0]).run
    try:
        scenario(report, Budget(seconds, random.Random(seed)))
    except Exception as error:
        report.fail(f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}")
    report.counts["seconds"] = round(time.monotonic() - began, 1)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of all scenarios together, by and large")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="may be repeated")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = options.only or list(SCENARIOS)
    whole = sum(SCENARIOS[name][1] for name in chosen)
    reports = []
    for name in chosen:
        report = run(name, options.seconds * SCENARIOS[name][1] / whole, f"{options.seed}/{name}")
        if options.only and not report.ran:
            report.fail("it was asked for, and did not run")
        reports.append(report)
        if not options.json:
            tell(report)
    failed = [report.name for report in reports if report.failures]
    not_run = [report.name for report in reports if not report.ran]
    if options.json:
        print(json.dumps({"seed": options.seed, "scenarios": [vars(report) for report in reports]}))
    else:
        held = sum(report.ran and not report.failures for report in reports)
        in_part = [report.name for report in reports if report.ran and report.not_run]
        told = f"{held} of {len(reports)} held, {len(not_run)} not run: {not_run}, in part: {in_part}"
        print(f"seed {options.seed}: {told}, failed: {failed}")
    return 1 if failed else 0


def tell(report: Report) -> None:
    stands = "FAILED" if report.failures else "held" if report.ran else "not run"
    print(f"{report.name}: {stands}")
    for what, count in report.counts.items():
        print(f"  {count:>11,} {what}")
    for reason in report.not_run:
        print(f"  NOT RUN: {reason}")
    for reason in report.failures:
        print(f"  FAILED: {reason}", file=sys.stderr)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
