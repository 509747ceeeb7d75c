"""Servers on a file and devices, of this build and of an older one."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.byte_proxy import ByteProxy, Fault
from support.report import Budget, Report
from support.server_process import ServerProcess
from versions.mixed_fleet import MixedFleet, Version

ROUNDS = 3
# Less than a push of ten edits is answered with, behind what the server declares.
ANSWER_BYTES = 700
SCOPE = "fleet:1"
# Long texts travel as patches where the server knows that: the old devices must get them whole.
PATCHES = "entities:\n  note:\n    patch: [body]\n"


@contextmanager
def serving(version: Version) -> Iterator[ServerProcess]:
    # Digests came a little later than patches; before both, a server took the word in its file and refused what came.
    config = PATCHES if version.has("verify") else None
    server = ServerProcess(Path(tempfile.mkdtemp(prefix="tidemark-fleet-")), config)
    server.program = version.program
    try:
        server.start()
        yield server
    finally:
        server.remove()


def mixed_fleet(server: ServerProcess, budget: Budget) -> MixedFleet:
    return MixedFleet(server.folder, server.url, server.secret, SCOPE, budget)


def devices(report: Report, budget: Budget, server_of: Version, first: Version, then: Version) -> None:
    """Two devices of one version on that server; then two of the other one beside them, and one more of each."""
    with serving(server_of) as server:
        fleet = mixed_fleet(server, budget)
        fleet.join(first, first)
        fleet.work(report, ROUNDS)
        fleet.converge(report, server_of.has("verify"))
        fleet.join(then, then)
        fleet.work(report, ROUNDS)
        fleet.join(first, then)
        fleet.converge(report, server_of.has("verify"))


def clients(report: Report, budget: Budget, old: Version, new: Version) -> None:
    devices(report, budget, new, old, new)


def servers(report: Report, budget: Budget, old: Version, new: Version) -> None:
    devices(report, budget, old, new, old)


def store(report: Report, budget: Budget, old: Version, new: Version) -> None:
    """The old server's store under the new server, and back, with devices of both versions that go on meanwhile."""
    with serving(old) as server:
        fleet = mixed_fleet(server, budget)
        fleet.join(old, new)
        fleet.work(report, ROUNDS)
        before = migrations(server.store)
        report.require(server.terminate() == 0, "the old server did not end by itself")
        for member in fleet.members:
            member.edit(5)
        server.program = new.program
        server.start()
        report.add("upgrades of a store in place")
        fleet.work(report, ROUNDS)
        fleet.join(old, new)
        fleet.converge(report, True)
        server.kill()
        _back(report, server, fleet, old, new, migrations(server.store) != before)


def _back(report: Report, server: ServerProcess, fleet: MixedFleet, old: Version, new: Version, is_newer: bool) -> None:
    """A store of the same form goes back to the old server; one that the new server changed is refused."""
    server.program = old.program
    if is_newer:
        shutil.copytree(server.folder, kept := Path(tempfile.mkdtemp(prefix="tidemark-fleet-")), dirs_exist_ok=True)
        try:
            server.start()
            report.not_run.append(f"{old.name} does not notice that a store is of a newer form (known)")
            server.kill()
            shutil.copytree(kept, server.folder, dirs_exist_ok=True)
        except RuntimeError as refusal:
            report.require("newer" in str(refusal), f"the old server does not say why it refuses: {refusal}")
            report.add("refusals of a store of a newer form")
        finally:
            shutil.rmtree(kept)
    else:
        server.start()
        fleet.work(report, ROUNDS)
        fleet.converge(report, old.has("verify"))
        server.kill()
        report.add("stores that went back")
    server.program = new.program
    server.start()
    fleet.work(report, 1)
    fleet.converge(report, True)


def migrations(path: Path) -> list[str]:
    db = sqlite3.connect(path)
    try:
        return sorted(name for (name,) in db.execute("SELECT identifier FROM grdb_migrations"))
    finally:
        db.close()


def files(report: Report, budget: Budget, old: Version, new: Version) -> None:
    """Devices' files under a newer app, with edits that are unsent, and with edits whose answer was never heard."""
    with serving(new) as server:
        fleet = mixed_fleet(server, budget)
        fleet.join(old, old, new)
        fleet.work(report, ROUNDS)
        sealed, unsent, _ = fleet.members
        sealed.edit(10)
        # What the server declares passes, and so does the push; its answer does not.
        with ByteProxy(server.port, budget.dice, fault=lambda _: Fault(down_to=ANSWER_BYTES)) as proxy:
            sealed.url = proxy.url
            report.require(sealed.sync()[0] == 1, "a sync whose answer was cut did not fail")
            sealed.url = server.url
        report.require(sealed.status().get("sent", 0) > 0, "the cut left no edit without its answer")
        unsent.edit(10)
        before = [form(member.path) for member in (sealed, unsent)]
        for member in (sealed, unsent):
            member.become(new)
        report.add("upgrades of a file with unsent edits", 2)
        report.require(fleet.sync(), f"a sync failed: {sorted(fleet.errors)}")
        fleet.work(report, ROUNDS)
        fleet.join(old)
        fleet.converge(report, True)
        unsent.edit(5)
        unsent.become(old)
        if form(unsent.path) == before[1]:
            fleet.work(report, 1)
            fleet.converge(report, True)
            report.add("files that went back")
            return
        rows = unsent.dump()
        code, _, error = unsent.sync()
        report.require(code == 1 and "schema_unsupported" in error, f"an old app on a newer file: {code} {error}")
        report.require(unsent.dump() == rows, "an old app has changed the rows of a newer file")
        unsent.become(new)
        fleet.work(report, 1)
        fleet.converge(report, True)
        report.add("refusals of a file of a newer form")


def form(path: Path) -> str:
    db = sqlite3.connect(path)
    try:
        return str(db.execute("SELECT value FROM tidemark_meta WHERE key = 'schema'").fetchone()[0])
    finally:
        db.close()
