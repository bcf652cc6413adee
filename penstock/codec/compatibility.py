"""Avro's rules of schema resolution: whether one schema reads what was written with another, and
what the compatibility levels of Confluent's Schema Registry ask of a new version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastavro.schema import parse_schema

from penstock.errors import SchemaError

LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_LARGEST_SCHEMA = 1 << 20
_DEEPEST = 64
#: kind of the reader's value → kinds of written values that it may be made from
_PROMOTED = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
#: what two schemas of the same records may differ in
_ASIDE = ("doc", "namespace")
#: what holds a schema inside another
_INNER = ("type", "items", "values")
#: a schema that says this of itself is not looked at by fastavro
_PARSED = "__fastavro_parsed"


@dataclass(frozen=True)
class AvroSchema:
    """A schema whose names are full names; `named` has its records, enums and fixed types."""

    root: Any
    named: Mapping[str, Any]


def parse(text: str) -> AvroSchema:
    """Read an Avro schema's JSON text. Raises SchemaError: it is none, or too large a one."""
    if len(text) > _LARGEST_SCHEMA:
        raise _no_schema(f"it is longer than {_LARGEST_SCHEMA} characters")
    named: dict[str, Any] = {}
    try:
        plain = json.loads(text)
        if _depth(plain) > _DEEPEST:
            raise ValueError("its types are nested too deeply")
        if _says_it_is_parsed(plain):
            raise ValueError(f"a schema has no {_PARSED}")
        root = parse_schema(plain, named, _write_hint=False)
        for one in named.values():
            _require_names(one)
    except Exception as wrong:  # fastavro has no error of its own for all of it
        raise _no_schema(f"{type(wrong).__name__}: {wrong}") from None
    return AvroSchema(root, named)


def _no_schema(why: str) -> SchemaError:
    return SchemaError("this is no Avro schema", code="E_SCHEMA", detail=why[:200])


def _says_it_is_parsed(plain: Any) -> bool:
    branches = plain if isinstance(plain, list) else [plain]
    return any(isinstance(one, dict) and _PARSED in one for one in branches)


def _require_names(named: Any) -> None:
    """Raise ValueError where names of a record's fields, or aliases, are no texts."""
    fields = named.get("fields", ())
    aliases = [alias for one in (named, *fields) for alias in one.get("aliases", ())]
    if not all(isinstance(name, str) for name in (*aliases, *(one["name"] for one in fields))):
        raise ValueError("a name is no text")


def _depth(plain: Any) -> int:
    """Return how deeply lists and objects of JSON are nested; stops behind the deepest allowed."""
    depth = 0
    layer = [plain]
    while layer and depth <= _DEEPEST:
        depth += 1
        layer = [inner for value in layer for inner in _inside(value)]
    return depth


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def is_same(one: AvroSchema, other: AvroSchema) -> bool:
    """Tell whether two schemas describe the same values in the same bytes with the same defaults.
    Spelling and documentation do not count.
    """
    return bool(_normal(one.root) == _normal(other.root))


def _normal(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_normal(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _normal_part(key, part) for key, part in schema.items() if key not in _ASIDE}
    return made["type"] if made.keys() == {"type"} else made


def _normal_part(key: str, part: Any) -> Any:
    """Return what a schema has under *key*, normal where that is schemas."""
    holds_schemas = key in _INNER or (key == "fields" and isinstance(part, list))
    return _normal(part) if holds_schemas else part


def check(level: str, new: AvroSchema, earlier: Sequence[AvroSchema]) -> list[str]:
    """Return what keeps *new* from being the next version of a subject; nothing when it fits.

    Args:
        level: one of LEVELS.
        earlier: the versions there are, the newest last.
    """
    compared = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
    found: list[str] = []
    for old in reversed(compared):
        if level.startswith(("BACKWARD", "FULL")):
            found += faults(new, old)
        if level.startswith(("FORWARD", "FULL")):
            found += faults(old, new)
    return found


def faults(reader: AvroSchema, writer: AvroSchema) -> list[str]:
    """Return why *reader* cannot read all that is written with *writer*: a word of Avro for the
    kind of fault, the place in the reader's schema, and what is there.
    """
    return _Resolution(reader, writer).compare(reader.root, writer.root, "")


class _Resolution:
    """One comparison. Two records that contain themselves are compared once: inside they count as
    fitting.
    """

    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self._reader = reader
        self._writer = writer
        #: names of a reader's and a writer's record → faults that were found
        self._known: dict[tuple[str, str], list[str]] = {}
        self._by_kind = {
            "record": self._records,
            "error": self._records,
            "enum": self._enums,
            "fixed": self._fixed,
            "array": self._arrays,
            "map": self._maps,
            "bytes": self._decimals,
        }

    def compare(self, reader: Any, writer: Any, path: str) -> list[str]:
        """Return the faults between two types."""
        reader = _resolve(reader, self._reader.named)
        writer = _resolve(writer, self._writer.named)
        if isinstance(writer, list):
            return [fault for branch in writer for fault in self.compare(reader, branch, path)]
        if isinstance(reader, list):
            return self._any_branch(reader, writer, path)
        kind = _kind(reader)
        written = _kind(writer)
        if kind == written:
            compare = self._by_kind.get(kind)
            return compare(reader, writer, path) if compare is not None else []
        if written in _PROMOTED.get(kind, ()):
            return []
        return [_fault("TYPE_MISMATCH", path, f"reader {kind} cannot read writer {written}")]

    def _any_branch(self, branches: list[Any], writer: Any, path: str) -> list[str]:
        for branch in branches:
            if not self.compare(branch, writer, path):
                return []
        return [_fault("MISSING_UNION_BRANCH", path, f"no branch reads writer {_kind(writer)}")]

    def _records(self, reader: Any, writer: Any, path: str) -> list[str]:
        pair = (reader["name"], writer["name"])
        known = self._known.get(pair)
        if known is not None:
            return known
        self._known[pair] = []
        found = _name_faults(reader, writer, path)
        written = {field["name"]: field for field in writer["fields"]}
        for place, field in enumerate(reader["fields"]):
            found += self._field(field, written, f"{path}/fields/{place}")
        self._known[pair] = found
        return found

    def _field(self, field: Any, written: Mapping[str, Any], path: str) -> list[str]:
        for name in (field["name"], *field.get("aliases", ())):
            if name in written:
                return self.compare(field["type"], written[name]["type"], f"{path}/type")
        if "default" in field:
            return []
        return [_fault("READER_FIELD_MISSING_DEFAULT_VALUE", path, field["name"])]

    def _enums(self, reader: Any, writer: Any, path: str) -> list[str]:
        found = _name_faults(reader, writer, path)
        missing = [one for one in writer["symbols"] if one not in reader["symbols"]]
        if missing and reader.get("default") is None:
            told = ", ".join(missing[:8])
            found.append(_fault("MISSING_ENUM_SYMBOLS", f"{path}/symbols", told))
        return found

    def _fixed(self, reader: Any, writer: Any, path: str) -> list[str]:
        found = _name_faults(reader, writer, path)
        if reader["size"] != writer["size"]:
            sizes = f"expected {writer['size']}, found {reader['size']}"
            found.append(_fault("FIXED_SIZE_MISMATCH", f"{path}/size", sizes))
        return found + self._decimals(reader, writer, path)

    def _arrays(self, reader: Any, writer: Any, path: str) -> list[str]:
        return self.compare(reader["items"], writer["items"], f"{path}/items")

    def _maps(self, reader: Any, writer: Any, path: str) -> list[str]:
        return self.compare(reader["values"], writer["values"], f"{path}/values")

    def _decimals(self, reader: Any, writer: Any, path: str) -> list[str]:
        """Digits of decimals are whole numbers on the wire: another scale makes them others."""
        read = _decimal(reader)
        written = _decimal(writer)
        if read is None or written is None or read == written:
            return []
        told = f"precision and scale are {written} as written, and {read} as read"
        return [_fault("TYPE_MISMATCH", path, told)]


def _resolve(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the type that a name stands for."""
    if isinstance(schema, str) and schema not in PRIMITIVES:
        return named[schema]
    return schema


def _kind(schema: Any) -> str:
    kind = schema if isinstance(schema, str) else schema["type"]
    return "record" if kind == "error" else str(kind)


def _decimal(schema: Any) -> tuple[Any, Any] | None:
    """Return precision and scale of a decimal; None for bytes that are none."""
    if not isinstance(schema, dict) or schema.get("logicalType") != "decimal":
        return None
    return schema.get("precision"), schema.get("scale", 0)


def _name_faults(reader: Any, writer: Any, path: str) -> list[str]:
    """Compare names without their namespaces, as Avro does, and the reader's aliases."""
    name = _unqualified(writer["name"])
    aliases = reader.get("aliases", ())
    if _unqualified(reader["name"]) == name or name in aliases or writer["name"] in aliases:
        return []
    return [_fault("NAME_MISMATCH", f"{path}/name", f"expected {writer['name']}")]


def _unqualified(name: str) -> str:
    return name.rpartition(".")[2]


def _fault(kind: str, path: str, what: str) -> str:
    return f"{kind} at {path or '/'}: {what}"
