"""PostgreSQL servers of this program: in a folder of their own, on its sockets, and gone with the program."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OPERATOR = "tidemark"  # may do everything
ROLE = "app"  # what the nodes connect as: PostgreSQL keeps some connections back from it
START_SECONDS = 60
READY = b"Z\0\0\0\5I"
SETTINGS = """
unix_socket_directories = '{folder}'
listen_addresses = ''
max_connections = {connections}
shared_buffers = 64MB
max_wal_size = 2GB
fsync = {durable}
wal_keep_size = 512MB
hot_standby = on
deadlock_timeout = 200ms
"""
# Ends what is left when its input is closed, which happens however the program ends.
KEEPER = """
trap '' INT TERM HUP
while read -r _; do :; done
for data in "$2"/*/; do "$1/pg_ctl" -D "$data" -m immediate -w stop; done >/dev/null 2>&1
cd /; rm -rf "$2"
"""


class NotInstalled(Exception):
    """There is no PostgreSQL on this machine, or nobody whom it could run as."""


def binaries() -> Path:
    """The newest version that is installed, whether its folder is on the path or not."""
    roots = [Path(root) for root in ("/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt")]
    folders = [folder / "bin" for root in roots if root.is_dir() for folder in root.iterdir()]
    folders.sort(key=lambda folder: [int(number) for number in re.findall(r"\d+", str(folder))], reverse=True)
    folders += [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    for folder in folders:
        if (folder / "initdb").exists():
            return folder
    raise NotInstalled("PostgreSQL is not installed: no initdb found; Scripts/setup installs it")


def _account() -> dict[str, Any]:
    """initdb refuses to work for root."""
    if os.getuid() != 0:
        return {}
    for user in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(user)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NotInstalled("there is no user whom PostgreSQL could run as")


class PostgresFolder:
    """Holds the servers of one run: a primary, and a standby where there is one."""

    def __init__(self, durable: bool = True, connections: int = 100):
        self.bin, self.account = binaries(), _account()
        self.settings = {"durable": "on" if durable else "off", "connections": connections}
        self.path = Path(tempfile.mkdtemp(prefix="tidemark-pg-", dir="/tmp"))  # the path of a socket has a limit
        if self.account:
            os.chown(self.path, self.account["user"], self.account["group"])
        words = ["/bin/sh", "-c", KEEPER, "sh", str(self.bin), str(self.path)]
        self._keeper = subprocess.Popen(
            words, stdin=subprocess.PIPE, cwd=self.path, start_new_session=True, **self.account
        )

    def __enter__(self) -> PostgresFolder:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(START_SECONDS)

    def run(self, program: str, *words: str) -> str:
        # Not through a pipe: the server would keep it open.
        with tempfile.TemporaryFile() as output:
            command = [str(self.bin / program), *words]
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.path,
                start_new_session=True,
                timeout=START_SECONDS,
                **self.account,
            )
            output.seek(0)
            told = output.read().decode("utf-8", "replace").strip()
        if done.returncode != 0:
            raise RuntimeError(f"{program} {words[-1][:200]}: {told[-1000:]}")
        return told

    def primary(self, port: int = 5432) -> PostgresServer:
        server = PostgresServer(self, f"data{port}", port)
        self.run("initdb", "-D", server.data, "-U", OPERATOR, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        with open(self.path / server.data / "postgresql.conf", "a") as file:
            file.write(SETTINGS.format(folder=self.path, **self.settings))
        server.start()
        server.psql(f"CREATE ROLE {ROLE} LOGIN")
        server.psql(f"CREATE DATABASE log OWNER {ROLE}")
        return server

    def standby(self, primary: PostgresServer, port: int = 5433) -> PostgresServer:
        """A copy that follows the primary and is not waited for."""
        server = PostgresServer(self, f"data{port}", port)
        shutil.rmtree(self.path / server.data, ignore_errors=True)
        source = f"host={self.path} port={primary.port} user={OPERATOR}"
        self.run("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-D", server.data, "-d", source)
        server.start()
        return server

    def url(self, servers: Sequence[PostgresServer], **more: str) -> str:
        """As libpq takes it: one host after the other, and whichever takes writes."""
        hosts = ",".join(f"{str(self.path).replace('/', '%2F')}:{server.port}" for server in servers)
        query = "&".join(f"{name}={value}" for name, value in more.items())
        return f"postgres://{ROLE}@{hosts}/log" + (f"?{query}" if query else "")


class PostgresServer:
    def __init__(self, folder: PostgresFolder, data: str, port: int):
        self.folder, self.data, self.port = folder, data, port
        self._foreign: list[socket.socket] = []

    def start(self) -> None:
        self._control("-l", f"{self.data}.log", "-o", f"-p {self.port}", "-t", str(START_SECONDS), "start")

    def stop(self, mode: str = "immediate") -> None:
        self._control("-m", mode, "stop")

    def promote(self) -> None:
        self._control("promote")

    def _control(self, *words: str) -> None:
        self.folder.run("pg_ctl", "-D", self.data, "-s", "-w", *words)

    def psql(self, sql: str, database: str = "postgres") -> str:
        """As the operator; what psql prints, without frames."""
        where = ["-h", str(self.folder.path), "-p", str(self.port), "-U", OPERATOR, "-d", database]
        return self.folder.run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", *where, "-c", sql)

    def end_sessions(self, most: int, also: str = "true") -> int:
        """Terminates some of the nodes' connections, whatever they are in the middle of."""
        chosen = f"SELECT pid FROM pg_stat_activity WHERE usename = '{ROLE}' AND {also} ORDER BY random() LIMIT {most}"
        return int(self.psql(f"SELECT count(pg_terminate_backend(pid)) FROM ({chosen}) AS chosen") or 0)

    def occupy(self) -> int:
        """Takes every connection that the nodes might get. Returns how many there were."""
        while True:
            end = self._foreigner()
            if end is None:
                return len(self._foreign)
            self._foreign.append(end)

    def _foreigner(self) -> socket.socket | None:
        end, told = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), b""
        end.settimeout(START_SECONDS)
        try:
            end.connect(str(self.folder.path / f".s.PGSQL.{self.port}"))
            words = b"".join(part + b"\0" for part in (b"user", ROLE.encode(), b"database", b"log", b""))
            end.sendall(struct.pack("!ii", len(words) + 8, 3 << 16) + words)
            while not told.endswith(READY):
                part = end.recv(4096)
                if not part:
                    break
                told += part
        except OSError:
            pass
        if told.endswith(READY):
            return end
        end.close()
        return None

    def leave(self) -> None:
        for end in self._foreign:
            end.close()
        self._foreign = []
