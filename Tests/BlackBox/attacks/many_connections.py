"""Ten thousand connections that say nothing. A client of good will is served, and every descriptor comes back: where
the server is told to keep them all, and where it has its usual limit."""

from __future__ import annotations

import resource
import select
import socket
import time

from support.pusher import Pusher
from support.report import Budget, Report, patiently
from support.server_process import ServerProcess

CONNECTIONS = 10_000
PER_ADDRESS = 5_000
# The limit that comes with the server is lower, and its patience may be shorter than a slow machine needs for this.
CONFIG = f"limits: {{connections: {CONNECTIONS + 500}, firstRequestTimeout: 10m, idleTimeout: 10m}}\n"
USUAL_CONNECTIONS = 1024 + 64
PER_BREATH = 50
BREATH_SECONDS = 0.03
BYTES_FOR_IDLE = 400 * 1024 * 1024
SLACK_DESCRIPTORS = 8
RELEASE_SECONDS = 30


def run(report: Report, budget: Budget) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, CONNECTIONS + 500) if hard != resource.RLIM_INFINITY else CONNECTIONS + 500
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))  # which the server inherits
    if wanted < CONNECTIONS + 500:
        report.not_run.append(f"{CONNECTIONS} connections: only {hard} descriptors are allowed")
    count = min(CONNECTIONS, wanted - 500)
    _usual_limit(report, count)
    with ServerProcess.temporary(CONFIG) as server:
        pusher = Pusher(server)
        for _ in range(20):
            pusher.push()
        before, rss_before = server.descriptors(), server.rss_kib()
        idle = _connect(server, count, report)
        time.sleep(1)
        alive = _alive(idle)
        report.add("connections that were made", len(idle))
        report.add("connections that the server kept", alive)
        began = time.monotonic()
        status, _, told = pusher.push()
        report.worst("seconds of a push beside them", time.monotonic() - began)
        report.require(status == 200, f"beside {alive} connections a push got {status} {told}")
        grown = server.rss_kib() - rss_before
        report.counts["MiB for them"] = round(grown / 1024, 1)
        report.counts["KiB for each"] = round(grown / max(1, alive), 1)
        report.require(grown * 1024 < BYTES_FOR_IDLE, f"{alive} idle connections take {grown // 1024} MiB")
        for each in idle:
            each.close()
        took = patiently(lambda: server.descriptors() <= before + SLACK_DESCRIPTORS, RELEASE_SECONDS)
        report.require(took is not None, f"{server.descriptors()} descriptors stay, {before} were there before")
        report.counts["descriptors before"] = before
        report.counts["descriptors after"] = server.descriptors()
        report.worst("seconds until they were back", took or 0)
        report.require(pusher.held() == pusher.acknowledged, "what was acknowledged and what is there differ")


def _usual_limit(report: Report, count: int) -> None:
    """Whoever is idle makes room."""
    with ServerProcess.temporary() as server:
        pusher = Pusher(server)
        pusher.push()
        before = server.descriptors()
        idle = _connect(server, count, report)
        began = time.monotonic()
        status, _, told = pusher.push()
        report.worst("seconds of a push at the usual limit", time.monotonic() - began)
        report.require(status == 200, f"beside {len(idle)} connections a push got {status} {told}")
        kept = server.descriptors() - before
        report.counts["connections kept at the usual limit"] = kept
        report.require(kept <= USUAL_CONNECTIONS + SLACK_DESCRIPTORS, f"{kept} descriptors are held")
        for each in idle:
            each.close()
        took = patiently(lambda: server.descriptors() <= before + SLACK_DESCRIPTORS, RELEASE_SECONDS)
        report.require(took is not None, f"{server.descriptors()} descriptors stay, {before} were there before")


def _connect(server: ServerProcess, count: int, report: Report) -> list[socket.socket]:
    """Several source addresses, since one has not enough ports for all."""
    idle: list[socket.socket] = []
    for number in range(count):
        each = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        each.settimeout(5)
        try:
            each.bind((f"127.0.0.{2 + number // PER_ADDRESS}", 0))
            each.connect(("127.0.0.1", server.port))
        except OSError as error:
            each.close()
            report.add(f"connections refused: {error}")
            break
        idle.append(each)
        if number % PER_BREATH == 0:
            # Whoever outruns the queue of connections to be accepted waits a whole second for the next try.
            time.sleep(BREATH_SECONDS)
    return idle


def _alive(idle: list[socket.socket]) -> int:
    poll = select.poll()
    for each in idle:
        poll.register(each, select.POLLIN | select.POLLHUP)
    return len(idle) - len(poll.poll(0))
