"""What a client of ill will puts on a socket. Each attack is a list of raw requests, sent as they are."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    name: str
    requests: list[bytes]
    # What the first answer may be; a connection that is closed without one is always allowed.
    allowed: tuple[int, ...] = (400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 431, 501, 503, 505)


def post(body: bytes, token: str, *headers: str, length: str | None = None) -> bytes:
    lines = ["POST /sync HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", "Content-Type: application/json"]
    if length != "":
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def chunked(token: str, tail: bytes) -> bytes:
    return post(b"", token, "Transfer-Encoding: chunked", length="") + tail


def bomb(mebibytes: int) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([deflate.compress(b" " * 1_048_576) for _ in range(mebibytes)]) + deflate.flush()


def attacks(token: str, dice: random.Random) -> list[Attack]:
    ok = json.dumps({"scope": "torture.full", "clientId": "hostile-0001", "operations": []}).encode()
    get = f"GET /sync/changes?scope=torture.full HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n".encode()
    zipped = "Content-Encoding: gzip"
    noise = [dice.randbytes(dice.choice((1, 100, 10_000))) for _ in range(20)]
    return [
        Attack("noise", noise),
        Attack("valid requests, then noise", [(get + b"\r\n") * 50 + dice.randbytes(500)], (200,)),
        Attack(
            "TLS and HTTP/2 on a plain port", [b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        ),
        Attack(
            "giant headers",
            [get + b"A: " + b"x" * 1_048_576 + b"\r\n\r\n", get + b"A: b\r\n" * 50_000 + b"\r\n"]
            + [b"GET /" + b"a" * 1_048_576 + b" HTTP/1.1\r\nHost: x\r\n\r\n", get + b"A: \x00\x01\r\n\r\n"],
        ),
        Attack(
            "wrong Content-Length",
            [post(ok, token, length=length) for length in ("-1", "x", "1e3", "99999999999999999999", "+5", "0x10", "3")]
            + [post(ok, token, "Content-Length: 3"), post(ok, token, "Transfer-Encoding: chunked")],
        ),
        Attack(
            "chunked nonsense",
            [
                chunked(token, tail)
                for tail in (b"zz\r\n", b"ffffffffffffffff\r\nabc", b"-1\r\n", b"5;" + b"x" * 200_000)
            ]
            + [chunked(token, b"1\r\n{" * 20_000), chunked(token, b"1\r\n[\r\n" * 20_000 + b"0\r\n\r\n")],
        ),
        Attack(
            "gzip bombs",
            [post(bomb(1024), token, zipped), post(gzip.compress(bomb(64)), token, zipped)]
            + [post(gzip.compress(ok)[:-6], token, zipped), post(b"\x1f\x8b" + dice.randbytes(200), token, zipped)]
            + [post(gzip.compress(bomb(9)), token, "Content-Encoding: gzip, gzip"), post(ok, token, zipped)],
        ),
        Attack(
            "JSON that nests",
            [post(b"[" * 1_048_576, token), post(b'{"a":' * 200_000, token), post(b"[" * 70 + b"]" * 70, token)],
        ),
        Attack(
            "JSON that is none",
            [
                post(body, token)
                for body in (b"", b"\xff\xfe", b"nul", b"1" * 1_000_000, b'"\\ud800"', ok + b"x", b"{} {}")
            ]
            + [
                post(ok[:-1] + b',"scope":"b"}', token),
                post(ok.replace(b"[]", b'["' + b"a" * 1_048_576 + b'"]'), token),
            ],
        ),
        Attack("a body that is too large", [post(b" " * 9_000_000, token), post(b"", token, length="9000000000")]),
        Attack(
            "odd methods and targets",
            [b"BREW /sync HTTP/1.1\r\nHost: x\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", b"GET\r\n\r\n"]
            + [
                b"GET /sync/changes?scope=%00%ff%zz HTTP/1.1\r\nHost: x\r\n\r\n",
                b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
            ]
            + [get.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n", b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n"],
        ),
    ]
