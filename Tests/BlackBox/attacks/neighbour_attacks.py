"""What one caller with a valid token can send to cost everybody else as much as possible, and the ground for it."""

from __future__ import annotations

import http.client
import json
import socket
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from support.tokens import mint

ANSWER_SECONDS = 20
BODY_BYTES = 8 << 20
RECORD_BYTES = 1_000_000
KNOWN_IDS = 10_000
PER_PUSH = 1_000
STATUS = b'"status":"'  # of a verdict; that of a problem is a number
VICTIM, OTHER, HEAVY, MANY = "near.victim", "near.other", "near.heavy", "near.many"
DEVICE = "attacker-0001"

# What is sent next, made from the last answer (empty where there was none).
Next = Callable[[bytes], bytes]


# MARK: What is attacked


@dataclass(frozen=True)
class Ground:
    port: int
    secret: bytes
    scope: str  # in which the attacker may write
    old: str = ""  # a checkpoint from before most of `HEAVY` was edited
    versions: dict[str, dict[str, int]] = field(default_factory=dict)  # by scope and id
    epoch: str = ""

    def token(self, grants: dict[str, str] | None = None, sub: str = "attacker") -> str:
        return mint(self.secret, sub, {self.scope: "rw"} if grants is None else grants)

    def push(self, body: bytes, token: str | None = None, *headers: str) -> bytes:
        lines = ["POST /sync/push HTTP/1.1", "Host: x", f"Authorization: Bearer {token or self.token()}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", *headers, "", ""]
        return "\r\n".join(lines).encode() + body

    def get(self, target: str, token: str, *headers: str) -> bytes:
        lines = [f"GET {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", *headers, "", ""]
        return "\r\n".join(lines).encode()


class Line:
    """A connection that is opened again whenever it was lost."""

    def __init__(self, port: int, seconds: float = ANSWER_SECONDS):
        self.port, self.seconds = port, seconds
        self.socket: socket.socket | None = None

    def open(self) -> socket.socket:
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=self.seconds)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.socket

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """0 where no whole answer came."""
        try:
            end = self.open()
            end.sendall(request)
            answer = http.client.HTTPResponse(end)
            answer.begin()
            told = answer.read()
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            return 0, b""
        if answer.will_close:
            self.close()
        return answer.status, told

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
        self.socket = None


def squeezed(operations: str) -> Callable[[str], bytes]:
    """Compresses what all bodies begin with once; what comes behind it differs from request to request."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = deflate.compress(b'{"operations":[' + operations.encode() + b"]") + deflate.flush(zlib.Z_FULL_FLUSH)

    def body(tail: str) -> bytes:
        rest = deflate.copy()
        return head + rest.compress(tail.encode()) + rest.flush()

    return body


def whole(scope: str, client: str, operations: str) -> bytes:
    return f'{{"scope":"{scope}","clientId":"{client}","operations":[{operations}]}}'.encode()


class Lane:
    """Sends operations in their order: what was not taken comes again."""

    def __init__(self, ground: Ground, operation: Callable[[str, int], str], count: int = PER_PUSH, client: str = ""):
        self.ground, self.operation, self.count = ground, operation, count
        self.client = client or uuid.uuid4().hex
        self.lane, self.number, self.token = uuid.uuid4().hex, 1, ground.token()

    def __call__(self, told: bytes) -> bytes:
        self.number += told.count(STATUS)
        if not told or b"operation_gap" in told:
            self.lane, self.number = uuid.uuid4().hex, 1
        return self.request()

    def request(self) -> bytes:
        numbers = range(self.number, self.number + self.count)
        operations = ",".join(self.operation(self.lane, number) for number in numbers)
        return self.ground.push(whole(self.ground.scope, self.client, operations), self.token)


def upsert(lane: str, number: int, entity: str, record: str, more: str) -> str:
    named = f'"type":"upsert","entity":"{entity}","id":"{record}"'
    return f'{{"lane":"{lane}","number":{number},{named},{more}}}'


# MARK: The attacks of the list


def references(document: str, entity: str, path: str = "$[*]", count: int = 64) -> str:
    refs = ",".join([f'{{"field":"doc","path":"{path}","entity":"{entity}"}}'] * count)
    return f'"refs":[{refs}],"fields":{{"doc":{json.dumps(document)}}}'


def unknown_ids(each: int) -> Callable[[Ground, int], Next]:
    def make(ground: Ground, who: int) -> Next:
        more = references("[" + ",".join(['"local-0"'] * each) + "]", "invoice")
        lane, count = uuid.uuid4().hex, min(PER_PUSH, (BODY_BYTES - 10_000) // len(more))
        body = squeezed(",".join(upsert(lane, n + 1, "remark", f"u{n}", more) for n in range(count)))
        token = ground.token()
        return lambda _: ground.push(body(tail(ground.scope)), token, "Content-Encoding: gzip")

    return make


def tail(scope: str, client: str = "") -> str:
    return f',"scope":"{scope}","clientId":"{client or uuid.uuid4().hex}"}}'


def known_ids(ground: Ground, who: int) -> Next:
    """All of them are there, so that no place ends the search. They are of one device, so only lanes may differ."""
    ids = ",".join(f'"local-{number}"' for number in range(KNOWN_IDS))
    more = references(f"[{ids}]", "invoice", count=1)
    count = (BODY_BYTES - 10_000) // (len(more) + 150)
    bodies = []
    for _ in range(3):
        lane = uuid.uuid4().hex
        body = squeezed(",".join(upsert(lane, n + 1, "remark", f"k{n}", more) for n in range(count)))
        bodies.append(ground.push(body(tail(ground.scope, DEVICE)), None, "Content-Encoding: gzip"))
    return cycle(bodies)


def cycle(requests: list[bytes]) -> Next:
    turn = iter(range(1 << 60))
    return lambda _: requests[next(turn) % len(requests)]


def large_bases(grants: dict[str, str] | None) -> Callable[[Ground, int], Next]:
    def make(ground: Ground, who: int) -> Next:
        bases = ",".join(f'"f{name:03}":1' for name in range(880))
        more = f'"baseVersion":1,"bases":{{{bases}}},"fields":{{"a":1}}'
        count, lane = (BODY_BYTES - 10_000) // (len(more) + 130), uuid.uuid4().hex
        body = squeezed(",".join(upsert(lane, n + 1, "wide", f"w{n}", more) for n in range(min(PER_PUSH, count))))
        token = ground.token(grants)
        return lambda _: ground.push(body(tail(ground.scope)), token, "Content-Encoding: gzip")

    return make


def lying_sizes(ground: Ground, who: int) -> Next:
    """The trailer says that a few bytes come out."""
    honest = large_bases(None)(ground, who)
    return lambda told: honest(told)[:-4] + b"\x10\0\0\0"


def chains(ground: Ground, who: int) -> Next:
    """First a chain, then edits that name one operation of it each, none of them the last."""

    def operation(lane: str, number: int) -> str:
        before = number - 1 if number <= PER_PUSH else PER_PUSH - number % PER_PUSH
        based = f'"baseNumber":{before},' if before > 0 else ""
        return upsert(lane, number, "chain", lane, f'{based}"fields":{{"f{number % 7}":{number}}}')

    return Lane(ground, operation)


def edits_of_large(ground: Ground, who: int) -> Next:
    based = f'"baseVersion":{ground.versions[ground.scope]["huge"]}'
    return Lane(ground, lambda lane, n: upsert(lane, n, "big", "huge", f'{based},"fields":{{"n":{n}}}'))


def rewinding(ground: Ground, who: int) -> Next:
    target, token = f"/sync/digest?scope={HEAVY}&at={ground.old}", ground.token({HEAVY: "r"})
    return lambda _: ground.get(target, token)


def held_back(grants: dict[str, str] | None) -> Callable[[Ground, int], Next]:
    def make(ground: Ground, who: int) -> Next:
        token = ground.token(grants, sub=f"slow-{who % 8}")
        request = ground.push(b'{"operations":[' + b" " * (BODY_BYTES - 100), token)
        return lambda _: request[:-1]

    return make


def invented_originals(ground: Ground, who: int) -> Next:
    def operation(lane: str, number: int) -> str:
        named = 3_000_000_000 + who * 1_000_000 + number
        temporary = -(1 << 61) - named
        original = f'"original":{{"epoch":"{(ground.epoch, "invented0001")[number % 2]}","version":{number}}}'
        return upsert(lane, number, "invoice", str(named), f'"tempId":"{temporary}",{original},"fields":{{"a":1}}')

    return Lane(ground, operation, count=200)


def new_devices(ground: Ground, who: int) -> Next:
    target, token = f"/sync/changes?scope={MANY}&limit=1", ground.token({MANY: "r"})
    return lambda _: ground.get(target, token, f"Tidemark-Client: {uuid.uuid4().hex}")


def refusable(size: int) -> Callable[[Ground, int], Next]:
    """Edits of what never was there."""

    def make(ground: Ground, who: int) -> Next:
        more = f'"baseVersion":1,"fields":{{"a":"{"y" * size}"}}'
        return Lane(ground, lambda lane, n: upsert(lane, n, "gone", f"g{lane[:8]}{n}", more), count=1_000)

    return make


# MARK: Those that nobody listed


def reading(*targets: str) -> Callable[[Ground, int], Next]:
    def make(ground: Ground, who: int) -> Next:
        token = ground.token({HEAVY: "r", MANY: "r"})
        return cycle([ground.get(target.replace("{old}", ground.old), token) for target in targets])

    return make


def named_records(ground: Ground, who: int) -> Next:
    follow = "".join(f"&follow=f{number}:row" for number in range(8))
    ids = ["".join(f"&id=m{first + 150 * step}" for step in range(100)) for first in range(7)]
    targets = [f"/sync/records/row?scope={MANY}{some}{follow}" for some in ids]
    heavy = "".join(f"&id=h{number}" for number in range(100))
    return reading(*targets, f"/sync/records/note?scope={HEAVY}{heavy}&follow=n:note")(ground, who)


def failing_groups(ground: Ground, who: int) -> Next:
    """All but the last could be taken."""

    def operation(lane: str, number: int) -> str:
        group = f'"group":"g{(number - 1) // PER_PUSH}",'
        based = '"baseVersion":1,' if number % PER_PUSH == 0 else ""
        return upsert(lane, number, "member", f"{lane[:8]}{number}", f'{group}{based}"fields":{{"a":{number}}}')

    return Lane(ground, operation)


def needing(ground: Ground, who: int) -> Next:
    def operation(lane: str, number: int) -> str:
        needs = ",".join(str(before) for before in range(max(1, number - 64), number))
        return upsert(lane, number, "child", f"{lane[:8]}{number}", f'"needs":[{needs}],"fields":{{"a":1}}')

    return Lane(ground, operation)


def odd_documents(ground: Ground, who: int) -> Next:
    """Wide, deep, long numbers and many escapes, where a reader passes over them and where it may not."""
    lane, fill = uuid.uuid4().hex, BODY_BYTES - 10_000
    wide = ",".join(f'"field{number}":{number}' for number in range(2_000))
    unread = [
        "[" + ",".join(["[]"] * (fill // 3)) + "]",
        "[" + ",".join(["[" * 60 + "]" * 60] * (fill // 121)) + "]",
        '"' + "\\u0041" * (fill // 6) + '"',
        "1" * fill,
        "{" + ",".join(f'"{number:07}":1' for number in range(fill // 12)) + "}",
        "[" + ",".join(["1.7976931348623157e308"] * (fill // 23)) + "]",
    ]
    bodies = [squeezed("")(f',"unread":{each}{tail(ground.scope)}') for each in unread]
    count = fill // (len(wide) + 130)
    wides = ",".join(upsert(lane, n + 1, "wide", f"o{n}", f'"fields":{{{wide}}}') for n in range(count))
    bodies.append(squeezed(wides)(tail(ground.scope)))
    return cycle([ground.push(body, None, "Content-Encoding: gzip") for body in bodies])


def odd_references(ground: Ground, who: int) -> Next:
    """Documents that nest, and paths that branch, where only the writer reads them."""
    deep = references("[" * 50_000 + '"local-0"' + "]" * 50_000, "invoice")
    steps = references("[" * 60 + '"local-0"' + "]" * 60, "invoice", path="$" + "[*]" * 60)
    numbers = references("[" + ",".join(["1"] * 400_000) + "]", "invoice")
    names = "{" + ",".join(f'"n{number}":["local-0"]' for number in range(40_000)) + "}"
    branching = references(names, "invoice", path="$.n39999[*]")
    lane, bodies = uuid.uuid4().hex, []
    for more in (deep, steps, numbers, branching):
        count = min(PER_PUSH, (BODY_BYTES - 10_000) // (len(more) + 130))
        bodies.append(squeezed(",".join(upsert(lane, n + 1, "remark", f"d{n}", more) for n in range(count))))
    turn, token = iter(range(1 << 60)), ground.token()
    return lambda _: ground.push(bodies[next(turn) % 4](tail(ground.scope)), token, "Content-Encoding: gzip")


def wide_edits(ground: Ground, who: int) -> Next:
    """Each edit of a record of 2,000 fields writes when each of them was last written."""
    first = ",".join(f'"f{number}":1' for number in range(1_900))

    def operation(lane: str, number: int) -> str:
        fields = first if number == 1 else f'"f{number}":{number}'
        return upsert(lane, number, "wide", lane, f'"fields":{{{fields}}}')

    return Lane(ground, operation)


def patches(ground: Ground, who: int) -> Next:
    """Whether the hash is wrong shows only once the whole text is made."""
    version = ground.versions[ground.scope]["long"]

    def operation(lane: str, number: int) -> str:
        patch = f'[{{"field":"body","splices":[[{number},1,"a"],[900000,0,"b"]],"hash":"{"0" * 32}"}}]'
        named = '"type":"patch","entity":"note","id":"long"'
        return f'{{"lane":"{lane}","number":{number},{named},"baseVersion":{version},"patch":{patch},"fields":{{}}}}'

    return Lane(ground, operation)


def conflicts(ground: Ground, who: int) -> Next:
    """Each verdict has the whole record."""
    based = f'"baseVersion":{ground.versions[ground.scope]["deal"]}'
    return Lane(ground, lambda lane, n: upsert(lane, n, "contract", "deal", f'{based},"fields":{{"n":-{n}}}'))


def many_scopes(ground: Ground, who: int) -> Next:
    """One token for all of them, and a push for each."""
    lane = Lane(replace(ground, scope="crowd"), lambda lane, n: upsert(lane, n, "row", f"c{n}", '"fields":{"a":1}'))
    lane.token = ground.token({"crowd*": "rw"})

    def request(told: bytes) -> bytes:
        lane.ground = replace(ground, scope=f"crowd.{uuid.uuid4().hex}")
        return lane(b"")

    return request


def new_entities(ground: Ground, who: int) -> Next:
    return Lane(ground, lambda lane, n: upsert(lane, n, f"e{lane[:8]}{n}", "x", '"fields":{"a":1}'))


def small_pushes(ground: Ground, who: int) -> Next:
    return Lane(ground, lambda lane, n: upsert(lane, n, "row", f"s{lane[:8]}{n}", '"fields":{"a":1}'), count=1)


def large_rows(ground: Ground, who: int) -> Next:
    """What fits into one request, over and over."""

    def operation(lane: str, number: int) -> str:
        return upsert(lane, number, "big", f"l{number % 8}", f'"fields":{{"t":"{number}{"z" * RECORD_BYTES}"}}')

    return Lane(ground, operation, count=8)


def streams(ground: Ground, who: int) -> Next:
    scopes = "&".join(f"scope=crowd.{number}" for number in range(100))
    token = ground.token({"crowd*": "r"}, sub=f"listener-{who % 4}")
    return lambda _: ground.get(f"/sync/events?{scopes}", token)


@dataclass(frozen=True)
class Attack:
    name: str
    make: Callable[[Ground, int], Next]
    lines: int = 4
    # ask: takes the answer; leave: hangs up before it; unread: never reads it; drip: waits with an unfinished body.
    manner: str = "ask"
    # Whether it touches the scope that the attacker writes in, so that the victim's own makes a difference.
    writes: bool = True


CHANGES = f"/sync/changes?scope={HEAVY}&limit=5000"
ATTACKS = [
    Attack("64 references to 100,000 unknown ids", unknown_ids(100_000)),
    Attack("64 references to 10,000 unknown ids", unknown_ids(10_000)),
    Attack("references to 10,000 known ids", known_ids),
    Attack("references, hung up on", unknown_ids(100_000), manner="leave"),
    Attack("large bases without a scope", large_bases({}), lines=12, writes=False),
    Attack("large bases for another scope", large_bases({"near.none": "rw"}), lines=12, writes=False),
    Attack("large bases", large_bases(None), lines=24),
    Attack("gzip that lies about its size", lying_sizes, lines=24, writes=False),
    Attack("chains of 1,000", chains),
    Attack("edits of a record of 1 MiB", edits_of_large),
    Attack("digests of old checkpoints", rewinding, lines=6, writes=False),
    Attack("bodies held back", held_back(None), lines=96, manner="drip", writes=False),
    Attack("bodies held back without a scope", held_back({}), lines=96, manner="drip", writes=False),
    Attack("invented originals", invented_originals),
    Attack("pulls of new devices", new_devices, writes=False),
    Attack("refused edits", refusable(200)),
    Attack("refused edits of 8 kB", refusable(8_000)),
    Attack("large pulls", reading(CHANGES, f"/sync/changes?scope={MANY}&limit=5000"), lines=32, writes=False),
    Attack("pulls of differences", reading(CHANGES + "&since={old}&patches=true"), lines=8, writes=False),
    Attack(
        "snapshots",
        reading(f"/sync/snapshot?scope={HEAVY}&limit=5000", f"/sync/snapshot?scope={MANY}&limit=5000&fields=a,b"),
        lines=32,
        writes=False,
    ),
    Attack(
        "digests of ranges",
        reading(
            f"/sync/digest?scope={MANY}&entity=row&every=100&field=a",
            f"/sync/digest?scope={MANY}&entity=row&every=1&after=m5&field=a",
            f"/sync/digest?scope={HEAVY}&entity=note&every=1&field=body",
            f"/sync/digest?scope={MANY}",
            f"/sync/digest?scope={HEAVY}",
        ),
        lines=8,
        writes=False,
    ),
    Attack("records by name", named_records, lines=16, writes=False),
    Attack("groups that fail at their end", failing_groups),
    Attack("needs of 64", needing),
    Attack("odd documents", odd_documents, lines=8),
    Attack("odd references", odd_references),
    Attack("edits of 2,000 fields", wide_edits),
    Attack("patches of long texts", patches),
    Attack("conflicts about large records", conflicts),
    Attack("many small pushes", small_pushes, lines=32),
    Attack("large rows", large_rows, lines=8),
    Attack("many scopes of one token", many_scopes, lines=16, writes=False),
    Attack("streams of nudges", streams, lines=64, manner="leave", writes=False),
    Attack("answers that nobody reads", reading(CHANGES), lines=64, manner="unread", writes=False),
    # The last one, since it leaves room for no more entities.
    Attack("a thousand new entities", new_entities),
]
