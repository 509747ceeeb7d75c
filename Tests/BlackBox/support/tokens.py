"""Tokens for whoever is to be let in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time

# So long that a server whose clock is a year ahead still takes it.
TOKEN_SECONDS = 3 * 365 * 86_400


def mint(secret: bytes, sub: str, scopes: dict[str, str], seconds: int = TOKEN_SECONDS, **more: str) -> str:
    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    claims = {"sub": sub, "exp": int(time.time()) + seconds, "scopes": scopes, **more}
    text = part(b'{"alg":"HS256","typ":"JWT"}') + "." + part(json.dumps(claims).encode())
    return text + "." + part(hmac.new(secret, text.encode(), hashlib.sha256).digest())
