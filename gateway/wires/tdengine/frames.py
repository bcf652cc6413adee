"""Messages of TDengine's WebSocket: what clients send as text or as bytes, and what they get back.

A text is `{"action": "query", "args": {"req_id": 1, …}}`. Bytes begin with the number of the
request, that of a result or statement, and that of the action, eight bytes each. Answers repeat
action and number; `code` 0 is good, others are TDengine's numbers for errors.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import http
from gateway.ingest import parse_json
from penstock.errors import PenstockError, SchemaError

_BINARY = struct.Struct("<QQQ")
_MOST_NUMBER = 2**64
#: actions that come as bytes, by their numbers
_BINARY_ACTIONS = {
    1: "set_tags",
    2: "bind",
    3: "write_raw",
    4: "write_raw_block",
    5: "write_raw_block_with_fields",
    6: "binary_query",
    7: "fetch_raw_block",
    9: "stmt2_bind",
}
_RAW_BLOCK = struct.Struct("<QQHQQII")
_RAW_BLOCK_ACTION = 7
_NO_ACTION = 2**64 - 1
_VERSION = 1
_NAME_CHARACTERS = 64
Reply = dict[str, Any] | bytes | None


@dataclass(frozen=True)
class ActionRequest:
    """One message of a client. `content` is what stands behind the head of bytes; *size* is that of
    the message, in bytes or characters.
    """

    action: str
    args: Mapping[str, Any]
    content: memoryview | None = None
    size: int = 0
    started: int = field(default_factory=time.monotonic_ns)

    @property
    def number(self) -> int:
        """The client's number of the request; 0 where it has none."""
        given = self.args.get("req_id")
        return given if isinstance(given, int) and 0 <= given < _MOST_NUMBER else 0

    @property
    def timing(self) -> int:
        """Nanoseconds since it came."""
        return time.monotonic_ns() - self.started

    def integer(self, name: str) -> int:
        """Return an argument that is a number from 0 on. Raises SchemaError."""
        value = self.args.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_NUMBER:
            raise _wrong(self.action, f'"{name}" is no number')
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return an argument that is a text. Raises SchemaError."""
        value = self.args.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise _wrong(self.action, f'"{name}" is no text')
        return value

    def items(self, name: str) -> list[Any]:
        """Return an argument that is a list. Raises SchemaError."""
        value = self.args.get(name)
        if not isinstance(value, list):
            raise _wrong(self.action, f'"{name}" is no list')
        return value

    def body(self) -> memoryview:
        """Return what came behind the head. Raises SchemaError: it was a text."""
        if self.content is None:
            raise _wrong(self.action, "it comes as bytes")
        return self.content

    def answer(self, **fields: Any) -> dict[str, Any]:
        """Return a good answer."""
        return self._reply(0, "", fields)

    def refusal(self, error: PenstockError) -> Reply:
        """Return what tells the client of *error*."""
        code = http.tdengine_code(error)
        words = http.description(error)
        if self.action == "fetch_raw_block" and self.content is not None:
            return self._raw(code, words, self.integer("id"), b"\x01")
        more = {"stmt_id": self.args["stmt_id"]} if "stmt_id" in self.args else {}
        return self._reply(code, words, more)

    def raw_block(self, result: int, block: bytes | None) -> bytes:
        """Return a block of a result, or that there are no more."""
        if block is None:
            return self._raw(0, "", result, b"\x01")
        return self._raw(0, "", result, b"\x00" + struct.pack("<I", len(block)) + block)

    def _reply(self, code: int, words: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "code": code,
            "message": words,
            "action": self.action,
            "req_id": self.number,
            "timing": self.timing,
            **fields,
        }

    def _raw(self, code: int, words: str, result: int, end: bytes) -> bytes:
        told = words.encode(errors="replace")
        head = _RAW_BLOCK.pack(
            _NO_ACTION, _RAW_BLOCK_ACTION, _VERSION, self.timing, self.number, code, len(told)
        )
        return head + told + struct.pack("<Q", result) + end


def read(data: str | bytes) -> ActionRequest:
    """Return what a client sent. Raises SchemaError."""
    return _read_text(data) if isinstance(data, str) else _read_bytes(data)


def versioned(content: memoryview) -> memoryview:
    """Return what stands behind the version of bytes. Raises SchemaError: it is another one."""
    if len(content) < 2:
        raise _wrong("binary", "the message is too short")
    (version,) = struct.unpack_from("<H", content)
    if version != _VERSION:
        raise _wrong("binary", f"version {version} of its layout is unknown")
    return content[2:]


def _read_text(data: str) -> ActionRequest:
    sent = parse_json(data)
    action = sent.get("action") if isinstance(sent, dict) else None
    args = sent.get("args", {}) if isinstance(sent, dict) else None
    if not isinstance(action, str) or not action or not isinstance(args, dict | None):
        raise _wrong("", 'it is {"action": "…", "args": {"req_id": 1, …}}')
    found = dict(args or {})
    found.setdefault("req_id", sent.get("req_id", 0))
    return ActionRequest(action[:_NAME_CHARACTERS], found, size=len(data))


def _read_bytes(data: bytes) -> ActionRequest:
    if len(data) < _BINARY.size:
        raise _wrong("", "bytes of a message are too few")
    number, resource, code = _BINARY.unpack_from(data)
    action = _BINARY_ACTIONS.get(code, f"binary action {code}")
    name = "id" if code in (6, 7) else "stmt_id"
    args = {"req_id": number, name: resource}
    return ActionRequest(action, args, memoryview(data)[_BINARY.size :], len(data))


def _wrong(action: str, detail: str) -> SchemaError:
    words = f"a message of action {action} cannot be read" if action else "no such message"
    return SchemaError(words, code="E_BODY", detail=detail)
