"""What one valid token costs everybody else. Beside each attack, on two cores, a victim's slowest push, pull and GET
/health stay under a second and the server under 400 MiB: on SQLite and on PostgreSQL, whether the attacker works in
a scope of his own or in the victim's."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import socket
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from attacks.neighbour_attacks import (
    ANSWER_SECONDS,
    ATTACKS,
    Attack,
    DEVICE,
    Ground,
    HEAVY,
    KNOWN_IDS,
    Lane,
    Line,
    MANY,
    Next,
    OTHER,
    PER_PUSH,
    RECORD_BYTES,
    STATUS,
    VICTIM,
    whole,
)
from support.postgres_server import NotInstalled, PostgresFolder
from support.report import Budget, Report
from support.server_process import ServerProcess

SERVED_WITHIN_SECONDS = 1.0
MEMORY_BOUND_MIB = 400
SLICE_SECONDS = (1.0, 6.0)  # of one attack, at least and at most
BACK_SECONDS = 25  # for the victim to be served again once an attacker has hung up
REQUESTS_OF_A_LINE = 3_000
LINE_PAUSE_SECONDS = 0.002  # so that a flood is the server's work more than the flooder's
VICTIM_PAUSE_SECONDS = 0.01
NICE = 10  # of attackers, who would have machines of their own
HEAVY_RECORDS = 281
MANY_RECORDS = 20_000
KINDS = ("push", "pull", "health")
DIFFERENT = 24  # of the heavy records, those whose whole text is another one since the old checkpoint
BACK_USUALLY_SECONDS = 0.5
ASSIGNED_IDS = range(1 << 52, 1 << 53)
CONFIG = "entities:\n  invoice: {ids: server}\n  note: {patch: [body]}\n  contract: {conflict: manual}\n"
PLACES = (("", OTHER), (", in its scope", VICTIM))

# Each runs on its own, since a process that measures must not wait for one that attacks.
PROCESSES = multiprocessing.get_context("fork")


# MARK: The attackers' process


def assault(attacks: list[Attack], ground: Ground, seconds: float, lines: int | None, main: Connection) -> None:
    """Says that all is made, waits for the word, attacks, and hangs up on everything at once."""
    os.nice(NICE)
    told: Counter[str] = Counter()
    work = [(attack, attack.make(ground, who)) for attack in attacks for who in range(lines or attack.lines)]
    main.send("ready")
    main.recv()
    until = time.monotonic() + seconds
    for attack, request in work:
        threading.Thread(target=one_line, args=(attack, request, ground.port, until, told), daemon=True).start()
    time.sleep(seconds)
    main.send(dict(told))
    os._exit(0)


def one_line(attack: Attack, request: Next, port: int, until: float, told: Counter[str]) -> None:
    line, last = Line(port), b""
    for _ in range(REQUESTS_OF_A_LINE):
        if time.monotonic() > until:
            return
        sent = request(last)
        told["sent"] += 1
        if attack.manner == "ask":
            status, last = line.ask(sent)
            told[str(status)] += 1
            time.sleep(0.05 if status == 0 else LINE_PAUSE_SECONDS)
        else:
            send_only(attack.manner, line, sent, until)


def send_only(manner: str, line: Line, sent: bytes, until: float) -> None:
    try:
        end = line.open()
        if manner == "unread":
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            end.sendall(sent * 20)
            time.sleep(max(0.0, until - time.monotonic()))
        elif manner == "drip":
            end.sendall(sent)
            end.recv(65_536)  # until the server has had enough of it
            time.sleep(0.1)
        else:
            end.sendall(sent)
            time.sleep(0.05)
    except OSError:
        time.sleep(0.05)
    line.close()


# MARK: The victim's process


class Victim:
    """Pushes one row at a time, pulls and asks for health, each on a connection of its own."""

    def __init__(self, port: int, secret: bytes, main: Connection):
        self.port, self.main, self.lock = port, main, threading.Lock()
        self.ground = Ground(port, secret, VICTIM)
        self.token = self.ground.token(sub="victim")
        self.over = threading.Event()
        self.rows: list[tuple[str, str]] = []  # entity and id of what was acknowledged
        self.since = ""
        self.lane, self.number = uuid.uuid4().hex, 1

    def run(self) -> None:
        acts = (self.push, self.pull, self.health)
        threads = [threading.Thread(target=self.again, args=(*pair,)) for pair in zip(KINDS, acts)]
        for thread in threads:
            thread.start()
        self.main.recv()
        self.over.set()
        for thread in threads:
            thread.join()
        self.main.send(self.rows)

    def again(self, kind: str, act: Callable[[Line], int]) -> None:
        line = Line(self.port)
        while not self.over.is_set():
            began, others = time.monotonic(), Counter[int]()
            while (status := act(line)) != 200 and not self.over.is_set():
                others[status] += 1
                time.sleep(VICTIM_PAUSE_SECONDS)
            with self.lock:
                self.main.send((kind, began, time.monotonic() - began, dict(others)))
            time.sleep(VICTIM_PAUSE_SECONDS)

    def push(self, line: Line) -> int:
        """Every fourth row gets its id from the server: such an insert is remembered by its name."""
        named, entity = f'"id":"v{self.number}"', "row"
        if self.number % 4 == 0:
            named, entity = f'"tempId":"{-(1 << 61) - self.number}"', "invoice"
        key = f'"lane":"{self.lane}","number":{self.number},"type":"upsert","entity":"{entity}"'
        operation = f'{{{key},{named},"fields":{{"text":"{self.number}"}}}}'
        status, told = line.ask(self.ground.push(whole(VICTIM, "victim-0001", operation), self.token))
        if status == 200:
            result = json.loads(told)["results"][0]
            if result["status"] == "applied":
                self.rows.append((entity, result.get("id", f"v{self.number}")))
            else:
                status = -1
            self.number += 1
        return status

    def pull(self, line: Line) -> int:
        target = f"/sync/changes?scope={VICTIM}" + (f"&since={self.since}" if self.since else "")
        status, told = line.ask(self.ground.get(target, self.token, "Tidemark-Client: victim-0001"))
        found = re.search(rb'"nextSince":"([^"]+)"', told[-2_000:])
        if status == 200 and found:
            self.since = found[1].decode()
        return status

    def health(self, line: Line) -> int:
        return line.ask(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")[0]


def suffer(port: int, secret: bytes, main: Connection) -> None:
    Victim(port, secret, main).run()


# MARK: The run


def run(report: Report, budget: Budget) -> None:
    with ServerProcess.temporary(CONFIG) as server:
        Siege("SQLite", report, budget, server, 0.5).run()
    try:
        with PostgresFolder() as postgres:
            url = postgres.url([postgres.primary()])
            with ServerProcess(Path(tempfile.mkdtemp(prefix="tidemark-box-")), CONFIG, store=url) as server:
                server.start()
                Siege("PostgreSQL", report, budget, server, 0.97).run()
    except NotInstalled as missing:
        report.not_run.append(str(missing))


@dataclass
class Seen:
    """What the victim met beside one attack."""

    worst: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)  # when the last request that was served began
    others: Counter[int] = field(default_factory=Counter)  # 0: no answer; -1: a verdict other than "applied"
    mebibytes: int = 0
    count: int = 0
    is_stuck: bool = False


class Siege:
    """One server, its victim, and one attack after the other."""

    def __init__(self, store: str, report: Report, budget: Budget, server: ServerProcess, share: float):
        self.store, self.report, self.budget, self.server, self.share = store, report, budget, server, share
        self.ground = Ground(server.port, server.secret, OTHER)

    def run(self) -> None:
        self._prepare()
        # What filling it took does not count.
        self.server.terminate()
        self.server.start()
        self.victim, theirs = PROCESSES.Pipe()
        process = PROCESSES.Process(target=suffer, args=(self.server.port, self.server.secret, theirs), daemon=True)
        process.start()
        try:
            self._attack("nothing", [], OTHER, 1.0)
            planned = self._planned()
            for number, (name, attacks, scope) in enumerate(planned):
                seconds = self.budget.left(self.share) / (len(planned) - number)
                self._attack(name, attacks, scope, min(max(seconds, SLICE_SECONDS[0]), SLICE_SECONDS[1]))
            self.victim.send("over")
            self._compare(self._last_words())
        finally:
            process.kill()
            process.join()

    def _planned(self) -> list[tuple[str, list[Attack], str]]:
        """All of them, from both scopes, and all at once; or as many as there is time for, at random."""
        planned = [(attack.name, [attack], OTHER) for attack in ATTACKS]
        planned += [(f"{attack.name}, in its scope", [attack], VICTIM) for attack in ATTACKS if attack.writes]
        everything = [(f"everything at once{where}", ATTACKS, scope) for where, scope in PLACES]
        fit = max(1, int(self.budget.left(self.share) / (SLICE_SECONDS[0] + BACK_USUALLY_SECONDS)) - len(everything))
        if fit < len(planned):
            self.report.add(f"attacks left out for want of time, {self.store}", len(planned) - fit)
            chosen = sorted(self.budget.dice.sample(range(len(planned)), fit))
            planned = [planned[at] for at in chosen]
        return planned + everything

    # Each attack

    def _attack(self, name: str, attacks: list[Attack], scope: str, seconds: float) -> None:
        ours, theirs = PROCESSES.Pipe()
        lines = 1 if len(attacks) > 1 else None
        ground = replace(self.ground, scope=scope)
        attacker = PROCESSES.Process(target=assault, args=(attacks, ground, seconds, lines, theirs), daemon=True)
        attacker.start()
        ours.recv()
        self._await_service(Seen())
        seen = Seen()
        ours.send("go")
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            self._watch(seen, began)
        told: dict[str, int] = ours.recv() if ours.poll(5) else {}
        attacker.join(5)
        attacker.kill()
        self._await_service(seen, began)
        self._judge(name, seen, told)

    def _watch(self, seen: Seen, began: float) -> None:
        """What the victim has met since then, and how large the server is."""
        with contextlib.suppress(OSError):
            seen.mebibytes = max(seen.mebibytes, self.server.rss_kib() // 1024)
        if self.victim.poll(0.02):
            kind, at, took, others = self.victim.recv()
            if at >= began:
                seen.worst[kind] = max(seen.worst.get(kind, 0), took)
                seen.count += 1
                seen.others.update(others)
            seen.last[kind] = at

    def _await_service(self, seen: Seen, began: float | None = None) -> None:
        """What an attacker left behind counts too, until each kind of request was served without him."""
        end = time.monotonic()
        began = began or end
        while any(seen.last.get(kind, 0) < end for kind in KINDS) and time.monotonic() < end + BACK_SECONDS:
            self._watch(seen, began)
        for kind in KINDS:
            if seen.last.get(kind, 0) < end:
                seen.is_stuck = True
                waited = time.monotonic() - max(seen.last.get(kind, 0) + seen.worst.get(kind, 0), began)
                seen.worst[kind] = max(seen.worst.get(kind, 0), waited)

    def _judge(self, name: str, seen: Seen, told: dict[str, int]) -> None:
        report, beside = self.report, f"{self.store}, {name}"
        if not self.server.is_up():
            report.fail(f"{beside}: the server is gone: {self.server.log.read_text()[-2000:]}")
        report.add("requests of the victim", seen.count)
        report.add("requests of attackers", told.pop("sent", 0))
        for status, count in told.items():
            report.add(f"attackers' answers {status}" if status != "0" else "attackers left without an answer", count)
        for kind in KINDS:
            worst = seen.worst.get(kind, 0)
            report.worst(f"seconds of a {kind} at most: {beside}", worst)
            within = worst < SERVED_WITHIN_SECONDS
            report.require(within, f"{beside}: a {kind} took {worst:.1f} s")
        report.worst(f"MiB at most: {beside}", seen.mebibytes)
        report.require(seen.mebibytes < MEMORY_BOUND_MIB, f"{beside}: the server takes {seen.mebibytes} MiB")
        others = {status: count for status, count in seen.others.items() if status != 0}
        report.require(not others, f"{beside}: the victim's requests were answered {others}")
        self._go_on(seen)

    def _go_on(self, seen: Seen) -> None:
        """Anew where an attack has left its marks, so that the next one answers for itself only."""
        if self.server.is_up() and not seen.is_stuck and seen.mebibytes < MEMORY_BOUND_MIB:
            return
        self.server.kill()
        self.server.start()
        self.report.add("servers started anew")

    # Before and after

    def _prepare(self) -> None:
        first = Line(self.server.port)
        self._fill(first, HEAVY, DIFFERENT, 4, lambda n: heavy_row(n, os.urandom(RECORD_BYTES // 2).hex()))
        old, epoch = self._checkpoint(first)
        self._fill(first, HEAVY, DIFFERENT, 4, lambda n: heavy_row(n, os.urandom(RECORD_BYTES // 2).hex()))
        self._fill(first, HEAVY, HEAVY_RECORDS, 4, lambda n: heavy_row(n, f"{n}" + "h" * RECORD_BYTES), DIFFERENT)
        self._fill(first, MANY, MANY_RECORDS, PER_PUSH, many_row)
        self._fill(first, OTHER, KNOWN_IDS, PER_PUSH, known_row)
        versions = {scope: self._large_records(first, scope) for scope in (OTHER, VICTIM)}
        self.ground = replace(self.ground, old=old, epoch=epoch, versions=versions)
        first.close()

    def _fill(
        self, line: Line, scope: str, count: int, each: int, row: Callable[[int], str], first: int = 0
    ) -> dict[str, Any]:
        """Until all have their verdicts; the last of which it returns."""
        ground = replace(self.ground, scope=scope)
        lane = Lane(ground, lambda name, n: f'{{"lane":"{name}","number":{n},{row(first + n - 1)}}}', each, DEVICE)
        last: dict[str, Any] = {}
        while lane.number <= count - first:
            lane.count = min(each, count - first - lane.number + 1)
            status, told = line.ask(lane.request())
            if status != 200:
                raise RuntimeError(f"{scope} was not filled: {status} {told[:500]!r}")
            last = json.loads(told)["results"][-1]
            lane.number += told.count(STATUS)
        return last

    def _large_records(self, line: Line, scope: str) -> dict[str, int]:
        text = "t" * RECORD_BYTES
        rows = {"huge": ("big", "t"), "long": ("note", "body"), "deal": ("contract", "t")}
        versions = {}
        for name, (entity, column) in rows.items():
            row = f'"type":"upsert","entity":"{entity}","id":"{name}","fields":{{"{column}":"{text}","n":0}}'
            versions[name] = self._fill(line, scope, 1, 1, lambda _: row)["version"]
        based = f'"baseVersion":{versions["deal"]},"fields":{{"n":1}}'
        # Somebody else has edited it since.
        self._fill(line, scope, 1, 1, lambda _: f'"type":"upsert","entity":"contract","id":"deal",{based}')
        return versions

    def _checkpoint(self, line: Line) -> tuple[str, str]:
        since, more = "", True
        token = self.ground.token({HEAVY: "r"})
        page: dict[str, Any] = {}
        while more:
            status, told = line.ask(self.ground.get(f"/sync/changes?scope={HEAVY}{since}", token))
            page = json.loads(told)
            since, more = f"&since={page['nextSince']}", page["hasMore"]
        return str(page["nextSince"]), str(page["epoch"])

    def _last_words(self) -> list[tuple[str, str]]:
        until = time.monotonic() + 3 * ANSWER_SECONDS
        while time.monotonic() < until:
            found = self.victim.recv() if self.victim.poll(1) else None
            if isinstance(found, list):
                return found
        self.report.fail(f"{self.store}: the victim never came to its end")
        return []

    def _compare(self, rows: list[tuple[str, str]]) -> None:
        """What was acknowledged is there, and attackers have no say in the ids that are given."""
        line, token, missing = Line(self.server.port), self.ground.token({VICTIM: "r"}), 0
        ids = {entity: [each for kind, each in rows if kind == entity] for entity in ("row", "invoice")}
        for entity, named in ids.items():
            for at in range(0, len(named), 100):
                query = "".join(f"&id={each}" for each in named[at : at + 100])
                status, told = line.ask(self.ground.get(f"/sync/records/{entity}?scope={VICTIM}{query}", token))
                live = [change["type"] for change in json.loads(told).get("changes", [])].count("upsert")
                missing += len(named[at : at + 100]) - live
        line.close()
        self.report.add("rows of the victim that were acknowledged", len(rows))
        self.report.require(missing == 0, f"{self.store}: {missing} of the victim's {len(rows)} rows are not there")
        given = [int(each) for each in ids["invoice"] if each.isdigit()]
        self.report.require(len(set(given)) == len(given), f"{self.store}: the victim was given an id twice")
        odd = [each for each in given if each not in ASSIGNED_IDS]
        self.report.require(not odd, f"{self.store}: the victim was given the ids {odd[:3]}")


def heavy_row(number: int, body: str) -> str:
    return f'"type":"upsert","entity":"note","id":"h{number}","fields":{{"body":"{body}","n":"h{number + 1}"}}'


def many_row(number: int) -> str:
    links = "".join(f',"f{link}":"m{(number * 8 + link) % MANY_RECORDS}"' for link in range(8))
    return f'"type":"upsert","entity":"row","id":"m{number}","fields":{{"a":{number},"b":"b{number}"{links}}}'


def known_row(number: int) -> str:
    return f'"type":"upsert","entity":"invoice","tempId":"local-{number}","fields":{{"a":{number}}}'
