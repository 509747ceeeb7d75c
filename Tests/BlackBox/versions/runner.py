"""Devices and servers of older versions with those of this one: everybody converges, nothing is lost or taken twice."""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable

from support.report import Budget, Report
from support.server_process import binary
from torture.runner import tell
from versions.file_scenes import clients, files, servers, store
from versions.mixed_fleet import Version
from versions.node_scenes import nodes

SCENES: dict[str, Callable[[Report, Budget, Version, Version], None]] = {
    "clients": clients,
    "servers": servers,
    "store": store,
    "files": files,
    "nodes": nodes,
}
EXAMPLES = """scenes:
  clients   old devices on the new server, then new ones beside them
  servers   new devices on an old server, then old ones beside them
  store     an old server's store under the new server, and back or refused
  files     devices' files with unsent edits under a new app, and back or refused
  nodes     two nodes of two versions on one PostgreSQL, one of them replaced under load"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--old",
        action="append",
        required=True,
        metavar="NAME[:SCENES]=PROGRAM",
        help="an older build of the command, and what it is asked for (clients,servers,…); may be repeated",
    )
    parser.add_argument("--only", action="append", choices=list(SCENES), help="may be repeated")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def play(scene: str, old: Version, new: Version, seed: int) -> Report:
    report = Report(f"{scene} of {old.name}")
    began = time.monotonic()
    try:
        # What takes time is bounded by counts, not by this.
        SCENES[scene](report, Budget(0, random.Random(f"{seed}/{scene}")), old, new)
    except Exception as error:
        report.fail(f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}")
    report.counts["seconds"] = round(time.monotonic() - began, 1)
    return report


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is taken down then, too
    new = Version("this version", binary())
    reports = []
    for text in options.old:
        words, _, program = text.partition("=")
        name, _, scenes = words.partition(":")
        for scene in scenes.split(",") if scenes else SCENES:
            if options.only and scene not in options.only:
                continue
            reports.append(play(scene, Version(name, program), new, options.seed))
            if not options.json:
                tell(reports[-1])
    failed = [report.name for report in reports if report.failures]
    if options.json:
        print(json.dumps({"seed": options.seed, "scenes": [vars(report) for report in reports]}))
    else:
        held = sum(report.ran and not report.failures for report in reports)
        print(f"seed {options.seed}: {held} of {len(reports)} held, failed: {failed}")
    if not any(report.ran for report in reports):
        print("fleet: no scene was played", file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("fleet: interrupted; nothing is left running", file=sys.stderr)
        sys.exit(130)
