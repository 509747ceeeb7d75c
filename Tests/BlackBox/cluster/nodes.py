"""PostgreSQL, and several nodes that share it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from support.postgres_server import PostgresFolder, PostgresServer
from support.server_process import ServerProcess


class Cluster:
    def __init__(
        self,
        nodes: int = 3,
        durable: bool = True,
        connections: int = 100,
        standby: bool = False,
        partitions: int = 0,
    ):
        self.postgres = PostgresFolder(durable, connections)
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-cluster-"))
        self.nodes: list[ServerProcess] = []
        try:
            self.primary: PostgresServer = self.postgres.primary()
            hosts = [self.primary]
            self.standby: PostgresServer | None = None
            if standby:
                self.standby = self.postgres.standby(self.primary)
                hosts.append(self.standby)
            more = {"target_session_attrs": "read-write"} if standby else {}
            self.url = self.postgres.url(hosts, **more)
            self._config = f"partitions: {partitions}\n" if partitions else None
            for _ in range(nodes):
                self.add()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.postgres.__exit__()

    def add(self, program: str | None = None) -> ServerProcess:
        """One more node, of another build than that of everybody if it is named."""
        node = ServerProcess(self.folder, self._config, store=self.url, name=f"node{len(self.nodes)}")
        node.program = program
        self.nodes.append(node)
        node.start()
        return node

    @property
    def secret(self) -> bytes:
        return self.nodes[0].secret

    @property
    def ports(self) -> list[int]:
        return [node.port for node in self.nodes]
