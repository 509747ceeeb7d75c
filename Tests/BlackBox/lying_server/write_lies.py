"""Lies in what is acknowledged, and about who may ask."""

from __future__ import annotations

from typing import Any

from lying_server.proxy import Asked, Given, Lie

COMMON = {
    "Content-Type": "application/json",
    "Tidemark-Protocol": "1",
    "Tidemark-Declarations": "0",
    "Cache-Control": "no-store",
}


class SwallowPush(Lie):
    """ "Applied", from a server that forgot to write."""

    kinds = {
        "read_your_writes",
        "replay_differs",
        "version_reused",
        "log_agreement",
        "convergence",
        "unexpected_answer",
        "gap",
    }

    def __init__(self) -> None:
        super().__init__()
        self.heads: dict[str, int] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        self.heads[asked.scope] = max(self.heads.get(asked.scope, 0), given.json.get("head") or 0)

    def ask(self, asked: Asked) -> Given | None:
        if asked.path != "/sync/push" or self.heads.get(asked.scope, 0) < 5 or not asked.json["operations"]:
            return None
        results = []
        for operation in asked.json["operations"]:
            if "group" in operation:
                return None
            self.heads[asked.scope] += 1
            keys = {name: operation[name] for name in ("lane", "number")}
            results.append({**keys, "status": "applied", "version": self.heads[asked.scope]})
        self.told += 1
        return Given(200, COMMON, {"results": results, "syncedAt": 0, "epoch": "AAAA"})


class OtherReplay(Lie):
    """A repeated operation is answered as if it had been done again."""

    kinds = {"replay_differs"}

    def tell(self, asked: Asked, given: Given) -> None:
        for result in given.json.get("results", []):
            if result.get("replayed") and "version" in result:
                result["version"] += 1
                self.told += 1


class ForgottenReplay(Lie):
    """A repeated operation is not known as one."""

    kinds = {"replay_differs", "gap"}

    def tell(self, asked: Asked, given: Given) -> None:
        for result in given.json.get("results", []):
            self.told += result.pop("replayed", None) is not None


class OneVersionForTwo(Lie):
    """Two writes are acknowledged under one version."""

    kinds = {"version_reused"}

    def tell(self, asked: Asked, given: Given) -> None:
        applied = [r for r in given.json.get("results", []) if r["status"] == "applied" and "record" not in r]
        for result, following in zip(applied, applied[1:]):
            result["version"] = following["version"]
            self.told += 1


class OpenDoor(Lie):
    """A question about a scope that is not granted is answered with somebody else's token."""

    kinds = {"scope_leak"}

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, dict[str, Any]] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path == "/sync/changes" and given.status == 200 and given.json["changes"]:
            self.pages[asked.scope] = given.json
        elif given.status == 403 and asked.scope in self.pages:
            given.status, given.json = 200, self.pages[asked.scope]
            given.headers["Content-Type"] = "application/json"
            self.told += 1


class TalkativeError(Lie):
    """A refusal that quotes what it refuses."""

    kinds = {"scope_leak"}

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, str] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        for change in given.json.get("changes", []):
            self.ids[asked.scope] = change["id"]
        if given.status == 403 and asked.scope in self.ids:
            given.json["detail"] = f"The newest record is {self.ids[asked.scope]}."
            self.told += 1


class DifferentNo(Lie):
    """Another refusal for a scope that exists than for one that does not."""

    kinds = {"scope_leak"}

    def tell(self, asked: Asked, given: Given) -> None:
        if given.status == 403 and asked.scope.endswith("none"):
            given.json["detail"] = "There is no such scope."
            self.told += 1
