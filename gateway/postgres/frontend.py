"""What clients of PostgreSQL's protocol 3 send: bodies of messages, read. Nothing here trusts a
length or a name; what does not fit is a SchemaError (E_BODY).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import SchemaError

#: what may stand in the place of a protocol's version, at the start of a connection
CANCEL = 80_877_102
SSL = 80_877_103
GSS = 80_877_104
#: major version of the protocol
MAJOR = 3
_TEXT = 0
_BINARY = 1


@dataclass(frozen=True)
class PgQuery:
    """Statements of the simple protocol."""

    text: str


@dataclass(frozen=True)
class PgParse:
    """A statement to keep under *name*; *types* are the oids of its first parameters, 0: unsaid."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True)
class PgBind:
    """A portal: a statement with values. A format is 0 for text or 1 for binary."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class PgTarget:
    """A statement (kind `S`) or a portal (`P`) that is to be described or closed."""

    kind: str
    name: str


@dataclass(frozen=True)
class PgDescribe(PgTarget):
    pass


@dataclass(frozen=True)
class PgClose(PgTarget):
    pass


@dataclass(frozen=True)
class PgExecute:
    """Rows of a portal; *most* at a time, 0: all."""

    portal: str
    most: int


@dataclass(frozen=True)
class PgPassword:
    text: str


@dataclass(frozen=True)
class PgPlain:
    """A message that is its kind alone: Sync `S`, Flush `H`, Terminate `X`."""

    kind: str


PgMessage: TypeAlias = (
    PgQuery | PgParse | PgBind | PgDescribe | PgClose | PgExecute | PgPassword | PgPlain
)


class MessageReader:
    """Takes the fields of a message in order."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def number(self, layout: str = "!i") -> int:
        """Take a number, of 32 bits unless *layout* says otherwise."""
        (found,) = struct.unpack(layout, self.take(struct.calcsize(layout)))
        return int(found)

    def take(self, count: int) -> bytes:
        """Take so many bytes."""
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise violation("a message ends within a field")
        found = self._body[self._at : end]
        self._at = end
        return found

    def text(self) -> str:
        """Take a text that ends with a zero."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise violation("a text has no end")
        found = self.take(end - self._at)
        self._at += 1
        return to_text(found)

    def numbers(self, layout: str) -> tuple[int, ...]:
        """Take a count of 16 bits, and as many numbers."""
        return tuple(self.number(layout) for _ in range(self.number("!H")))

    def value(self) -> bytes | None:
        """Take the bytes of a value; None: it is NULL."""
        count = self.number()
        return None if count == -1 else self.take(count)

    def end(self) -> None:
        if self._at != len(self._body):
            raise violation("a message has more than its fields")


def violation(what: str) -> SchemaError:
    """Return the error for bytes that are none of the protocol's."""
    return SchemaError(f"the client breaks PostgreSQL's protocol: {what}", code="E_BODY")


def to_text(given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise violation("a text is not UTF-8") from None


def read_options(body: bytes) -> dict[str, str]:
    """Return names and values of a startup message, behind its version. Raises SchemaError."""
    fields = MessageReader(body)
    found: dict[str, str] = {}
    while name := fields.text():
        found[name] = fields.text()
    return found


def read_message(kind: bytes, body: bytes) -> PgMessage:
    """Return the message of a kind. Raises SchemaError."""
    read = _KINDS.get(kind)
    if read is None:
        raise violation(f"there is no message {kind!r}")
    fields = MessageReader(body)
    message = read(fields)
    fields.end()
    return message


def _bind(fields: MessageReader) -> PgBind:
    portal = fields.text()
    statement = fields.text()
    formats = _formats(fields)
    values = tuple(fields.value() for _ in range(fields.number("!H")))
    return PgBind(portal, statement, formats, values, _formats(fields))


def _formats(fields: MessageReader) -> tuple[int, ...]:
    found = fields.numbers("!h")
    if any(code not in (_TEXT, _BINARY) for code in found):
        raise violation("a format is 0 for text or 1 for binary")
    return found


def _target(fields: MessageReader) -> tuple[str, str]:
    kind = to_text(fields.take(1))
    if kind not in ("S", "P"):
        raise violation("it is neither a statement nor a portal")
    return kind, fields.text()


def _plain(kind: str) -> Callable[[MessageReader], PgMessage]:
    return lambda _: PgPlain(kind)


_KINDS: dict[bytes, Callable[[MessageReader], PgMessage]] = {
    b"Q": lambda fields: PgQuery(fields.text()),
    b"P": lambda fields: PgParse(fields.text(), fields.text(), fields.numbers("!I")),
    b"B": _bind,
    b"D": lambda fields: PgDescribe(*_target(fields)),
    b"C": lambda fields: PgClose(*_target(fields)),
    b"E": lambda fields: PgExecute(fields.text(), max(fields.number(), 0)),
    b"p": lambda fields: PgPassword(fields.text()),
    b"S": _plain("S"),
    b"H": _plain("H"),
    b"X": _plain("X"),
}
