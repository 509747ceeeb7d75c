"""A server as a process of its own, on a port of its own, with a store that outlives it."""

from __future__ import annotations

import http.client
import os
import random
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

READY_SECONDS = 30


def binary() -> str:
    found = os.environ.get("TIDEMARK_BIN") or shutil.which("tidemark")
    for build in (".build-release/release", ".build/release", ".build/debug"):
        built = Path(__file__).parents[3] / build / "tidemark"
        found = found or (str(built) if built.exists() else None)
    if not found:
        raise SystemExit("no tidemark: build it, or name it in TIDEMARK_BIN")
    return found


def free_port() -> int:
    """Below those that outgoing connections get: a client that asks while the server is down would else meet itself."""
    while True:
        port = random.randrange(15_000, 30_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue


class ServerProcess:
    def __init__(self, folder: Path, config: str | None = None, store: str | None = None, name: str = "server"):
        """The store is a file in the folder, or at the address that is given, with a secret that the folder holds."""
        self.folder = folder
        self.wrapper: list[str] = []  # a command that starts the server and waits for it
        self.program: str | None = None  # another build than that of everybody
        self.store, self.port, self.log = folder / "sync.sqlite", 0, folder / f"{name}.log"
        self.address = store or f"sqlite:{self.store}"
        self.secret_file = Path(f"{self.store}.secret")
        if store is not None and not self.secret_file.exists():
            self.secret_file.write_text(secrets.token_urlsafe(48))
        self.config: Path | None = None
        if config is not None:
            self.config = folder / "tidemark.yaml"
            self.config.write_text(config)
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def temporary(cls, config: str | None = None) -> "ServerProcess":
        server = cls(Path(tempfile.mkdtemp(prefix="tidemark-box-")), config)
        try:
            server.start()
        except BaseException:
            server.remove()
            raise
        return server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def secret(self) -> bytes:
        return self.secret_file.read_bytes().strip()

    @property
    def pid(self) -> int:
        assert self.process is not None
        if not self.wrapper:
            return self.process.pid
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else self.process.pid

    def start(self) -> float:
        """Until it says where it listens; the first port is kept. Returns the seconds it took."""
        began = time.monotonic()
        self.port = self.port or free_port()
        command = [
            *self.wrapper,
            self.program or binary(),
            "serve",
            "--listen",
            f"127.0.0.1:{self.port}",
            "--store",
            self.address,
        ]
        if not self.address.startswith("sqlite:"):
            command += ["--secret-file", str(self.secret_file)]
        if self.config is not None:
            command += ["--config", str(self.config)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=self.folder)
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], READY_SECONDS)
        line = self.process.stdout.readline().decode() if ready else ""
        found = re.search(r":(\d+)\s*$", line)
        if not found:
            raise RuntimeError(f"the server did not start: {line!r} {self.log.read_text()[-2000:]}")
        self.port = int(found[1])
        return time.monotonic() - began

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self, seconds: float = 60) -> int:
        return self._end(signal.SIGTERM, seconds)

    def _end(self, how: signal.Signals, seconds: float = 30) -> int:
        assert self.process is not None and self.process.stdout is not None
        if self.process.poll() is None:
            os.kill(self.pid, how)
        code = self.process.wait(seconds)
        self.process.stdout.close()
        return code

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        if self.is_up():
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def rss_kib(self) -> int:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) if found else 0

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def health_seconds(self) -> float:
        """How long a client of good will waits for the simplest answer."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/health")
        if connection.getresponse().status != 200:
            raise RuntimeError("not healthy")
        connection.close()
        return time.monotonic() - began
