"""A small disk of its own in memory, that can be filled to the last block and emptied again."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path


class MountRefused(Exception):
    pass


class SmallDisk:
    def __init__(self, mebibytes: int):
        self.mebibytes = mebibytes

    def __enter__(self) -> SmallDisk:
        self.path = Path(tempfile.mkdtemp(prefix="tidemark-disk-"))
        words = ["mount", "-t", "tmpfs", "-o", f"size={self.mebibytes}m", "tmpfs", str(self.path)]
        try:
            done = subprocess.run(words, capture_output=True)
            refused = "" if done.returncode == 0 else done.stderr.decode().strip()
        except OSError as error:
            refused = str(error)
        if refused:
            self.path.rmdir()
            raise MountRefused(f"no small disk: {refused}")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], capture_output=True)
        self.path.rmdir()

    def fill(self, leave_bytes: int = 0) -> None:
        free = os.statvfs(self.path)
        size = max(0, free.f_bavail * free.f_frsize - leave_bytes)
        with open(self.path / "ballast", "ab") as file:
            try:
                os.posix_fallocate(file.fileno(), file.tell(), max(1, size))
            except OSError:
                pass  # because the store may have taken a block meanwhile, which is as full

    def free(self) -> None:
        (self.path / "ballast").unlink(missing_ok=True)
