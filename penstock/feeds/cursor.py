"""A reader's position in one topic, as a token that a client can keep. Pure: no Kafka, no
sockets.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field

from penstock.errors import PenstockError

#: characters of a token, and bytes of what is in it: some 10,000 producers
MAX_TOKEN = 512 << 10
MAX_INFLATED = 2 << 20


class TokenError(PenstockError):
    code = "E_RESUME_TOKEN"


@dataclass
class Cursor:
    """Next offset of each partition, and per producer the highest position had."""

    offsets: dict[int, int]
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def token(self) -> str:
        """Opaque text from which `from_token` goes on exactly here."""
        body = json.dumps({"v": 1, "o": self.offsets, "p": self.producers}, separators=(",", ":"))
        return base64.urlsafe_b64encode(zlib.compress(body.encode(), 1)).decode()

    @classmethod
    def from_token(cls, token: str) -> Cursor:
        """Raises TokenError when *token* is none."""
        try:
            raw = json.loads(_inflate(token))
            offsets = {int(p): int(o) for p, o in raw["o"].items()}
            if not all(0 <= p < 1 << 31 and abs(o) < 1 << 63 for p, o in offsets.items()):
                raise ValueError("no partition or no offset")
            return cls(offsets, {k: (int(v[0]), int(v[1])) for k, v in raw["p"].items()})
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
            zlib.error,
        ):
            raise TokenError(
                "this is no resume token",
                hint="send the token of the last message, or from: latest",
            ) from None

    def check_seen(self, partition: int, producer: str, offset: int, ordinal: int) -> bool:
        """Tell whether this position of *producer* has been seen, and note it; ordinals count in
        each partition by itself.
        """
        producer = f"{partition}/{producer}"
        last = self.producers.get(producer)
        if last is not None and (offset, ordinal) <= last:
            return True
        self.producers[producer] = (offset, ordinal)
        return False


def _inflate(token: str) -> bytes:
    """Inflate a token to `MAX_INFLATED` bytes at most. Raises ValueError, zlib.error."""
    if len(token) > MAX_TOKEN:
        raise ValueError("too long")
    inflating = zlib.decompressobj()
    body = inflating.decompress(base64.urlsafe_b64decode(token.encode()), MAX_INFLATED)
    if not inflating.eof:
        raise ValueError("too much in it, or cut off")
    return body
