"""Flight SQL's messages: commands and actions as bytes.

Drivers (ADBC's, Arrow's JDBC) wrap commands in protobuf's `Any`. What is read of them are numbers
and strings of bytes, so this reads and writes those and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_PACKAGE = b"arrow.flight.protocol.sql."
_URL = b"type.googleapis.com/"
_CREATE = "ActionCreatePreparedStatementRequest"
_CREATED = b"ActionCreatePreparedStatementResult"
#: wire types of protobuf
_VARINT = 0
_BYTES = 2
#: bits of a varint: of 64, as of negative numbers, which have all of them
_MOST_BITS = 70
#: why an option of a session is not set
INVALID_NAME = 1
INVALID_VALUE = 2
#: a `CloseSessionResult`: it is closed
CLOSED = bytes((1 << 3 | _VARINT, 1))
Field = tuple[int, int | bytes]


@dataclass(frozen=True)
class FlightCommand:
    """A command: its name without the package, and its fields in the order in which they came."""

    name: str
    fields: tuple[Field, ...] = ()

    def content(self, number: int) -> bytes | None:
        """Return the bytes of a field; None: it is not given. The last one counts."""
        found = [value for at, value in self.fields if at == number and isinstance(value, bytes)]
        return found[-1] if found else None

    def text(self, number: int) -> str | None:
        """Return a field's text; None: it is not given. Raises ValueError."""
        found = self.content(number)
        return None if found is None else found.decode()

    def texts(self, number: int) -> list[str]:
        """Return the texts of a field that may come several times. Raises ValueError."""
        return [v.decode() for at, v in self.fields if at == number and isinstance(v, bytes)]

    def number(self, number: int) -> int:
        """Return a field's number; 0: it is not given."""
        found = [value for at, value in self.fields if at == number and isinstance(value, int)]
        return found[-1] if found else 0

    def numbers(self, number: int) -> list[int]:
        """Return numbers of a field that may come several times, packed or one by one. Raises
        ValueError.
        """
        found: list[int] = []
        for at, value in self.fields:
            if at != number:
                continue
            if isinstance(value, int):
                found.append(value)
            else:
                found += _packed(value)
        return found

    def message(self, number: int) -> FlightCommand:
        """Return the message in a field; an empty one: it is not given. Raises ValueError."""
        return FlightCommand("", tuple(_fields(self.content(number) or b"")))


def read_command(message: bytes) -> FlightCommand:
    """Read a command or an action's body in `Any`. Raises ValueError: it is none of Flight SQL."""
    wrapped = FlightCommand("", tuple(_fields(message)))
    name = (wrapped.content(1) or b"").rpartition(b"/")[2]
    if not name.startswith(_PACKAGE):
        raise ValueError("it is no command of Flight SQL")
    kind = name.removeprefix(_PACKAGE).decode()
    return FlightCommand(kind, tuple(_fields(wrapped.content(2) or b"")))


def is_command(message: bytes) -> bool:
    """Tell an `Any` from a ticket of ours, which is text."""
    return message[:1] == b"\n"


def prepared_query(body: bytes) -> str:
    """The text of an `ActionCreatePreparedStatementRequest`. Raises ValueError."""
    command = read_command(body)
    if command.name != _CREATE:
        raise ValueError("it prepares no statement")
    return command.text(1) or ""


def created(handle: bytes, answer: bytes, parameters: bytes) -> bytes:
    """An `ActionCreatePreparedStatementResult`.

    Args:
        answer: the schema of what the statement gives, serialised; empty: it gives no rows.
        parameters: the schema of its parameters.
    """
    fields = [_field(1, handle)]
    fields += [_field(n, content) for n, content in ((2, answer), (3, parameters)) if content]
    return _field(1, _URL + _PACKAGE + _CREATED) + _field(2, b"".join(fields))


def bound(handle: bytes) -> bytes:
    """A `DoPutPreparedStatementResult`, which nothing wraps."""
    return _field(1, handle)


def updated(count: int) -> bytes:
    """A `DoPutUpdateResult`: how many rows a statement changed; -1: nobody knows."""
    return _number(1, count & (1 << 64) - 1)


def read_options(body: bytes) -> dict[str, str | None]:
    """Read a `SetSessionOptionsRequest`; the value of an option that is no text is None. Raises
    ValueError.
    """
    found = {}
    for at, entry in _fields(body):
        if at == 1 and isinstance(entry, bytes):
            option = FlightCommand("", tuple(_fields(entry)))
            found[option.text(1) or ""] = option.message(2).text(1)
    return found


def refused_options(wrong: Mapping[str, int]) -> bytes:
    """A `SetSessionOptionsResult`; without *wrong* ones, all options are set."""
    return _entries({name: _number(1, why) for name, why in wrong.items()})


def options(now: Mapping[str, str]) -> bytes:
    """A `GetSessionOptionsResult`."""
    return _entries({name: _field(1, value.encode()) for name, value in now.items()})


def _entries(messages: Mapping[str, bytes]) -> bytes:
    """A map of messages in field 1."""
    return b"".join(
        _field(1, _field(1, name.encode()) + _field(2, content))
        for name, content in messages.items()
    )


def write_command(name: str, fields: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """Return a command in `Any`, whose fields are strings of bytes."""
    value = b"".join(_field(number, content) for number, content in fields)
    return _field(1, _URL + _PACKAGE + name.encode()) + _field(2, value)


def _number(number: int, value: int) -> bytes:
    """A field that is a number."""
    return bytes((number << 3 | _VARINT,)) + _write_varint(value)


def _field(number: int, content: bytes) -> bytes:
    """A field that is a string of bytes."""
    return _write_varint(number << 3 | _BYTES) + _write_varint(len(content)) + content


def _write_varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _packed(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield value


def _fields(message: bytes) -> Iterator[Field]:
    """Number and content of all fields. Raises ValueError."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind not in (_VARINT, _BYTES):
            raise ValueError("it has a field of a kind that no command has")
        value, at = _varint(message, at)
        if kind == _VARINT:
            yield tag >> 3, value
            continue
        if at + value > len(message):
            raise ValueError("it ends within a field")
        yield tag >> 3, message[at : at + value]
        at += value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and what comes behind it. Raises ValueError."""
    value = shift = 0
    while at < len(message) and shift < _MOST_BITS:
        byte = message[at]
        value = value | (byte & 0x7F) << shift
        at = at + 1
        shift = shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("it ends within a number")
