"""What Flight SQL's drivers ask of the server and its dialect: GetSqlInfo, and types of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.catalog.changes.limits import MAX_COLUMN_NAME
from penstock.installed import version
from penstock.names import MAX_NAME_BYTES
from penstock.sql.functions import REGISTRY
from penstock.sql.parser import MAX_TEXT
from penstock.sql.vocabulary import vocabulary

#: places of the types in the union of values
_STRING, _BOOL, _LONG, _INT, _STRINGS, _MAP = range(6)
_VALUES: tuple[tuple[str, pa.DataType], ...] = (
    ("string_value", pa.utf8()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", pa.list_(pa.field("string_data", pa.utf8()))),
    ("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.field("$data$", pa.int32())))),
)
FEATURES = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union([pa.field(name, kind) for name, kind in _VALUES])),
    ]
)
TYPES = pa.schema(
    [
        pa.field("type_name", pa.utf8(), nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.utf8()),
        pa.field("literal_suffix", pa.utf8()),
        pa.field("create_params", pa.list_(pa.field("item", pa.utf8(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.utf8()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
#: (name, number in ODBC, digits or bytes at most, what CREATE TABLE takes behind it)
_TYPES: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("TINYINT", -6, 3, ()),
    ("TINYINT UNSIGNED", -6, 3, ()),
    ("BIGINT", -5, 19, ()),
    ("BIGINT UNSIGNED", -5, 20, ()),
    ("VARBINARY", -3, 65_517, ("length",)),
    ("NCHAR", -9, 16_379, ("length",)),
    ("BOOL", -7, 1, ()),
    ("DECIMAL", 3, 38, ("precision", "scale")),
    ("INT", 4, 10, ()),
    ("INT UNSIGNED", 4, 10, ()),
    ("SMALLINT", 5, 5, ()),
    ("SMALLINT UNSIGNED", 5, 5, ()),
    ("FLOAT", 7, 24, ()),
    ("DOUBLE", 8, 53, ()),
    ("VARCHAR", 12, 65_517, ("length",)),
    ("JSON", 12, 4_095, ()),
    ("TIMESTAMP", 93, 29, ()),
)
_QUOTED = frozenset(("VARCHAR", "NCHAR", "JSON", "TIMESTAMP"))
_BINARY_DIGITS = frozenset(("FLOAT", "DOUBLE"))
_NULLABLE = 1
_SEARCHABLE = 3


def features(wanted: Sequence[int]) -> pa.Table:
    """Return what the server can do, by Flight SQL's numbers; of those that it does not know
    nothing.

    Args:
        wanted: numbers; none: all.
    """
    known = _features()
    chosen = [number for number in dict.fromkeys(wanted) if number in known] if wanted else known
    return _union({number: known[number] for number in chosen})


def types(number: int | None) -> pa.Table:
    """Return the types that columns can have, by their numbers in ODBC.

    Args:
        number: of the only ones that are wanted; None: all.
    """
    if number is not None and number >= 1 << 63:
        number -= 1 << 64  # a negative number as protobuf has it
    rows = [_type_row(*kind) for kind in sorted(_TYPES, key=lambda kind: kind[1])]
    rows = [row for row in rows if number in (None, row["data_type"])]
    return pa.Table.from_pylist(rows, schema=TYPES)


def _type_row(name: str, number: int, size: int, params: tuple[str, ...]) -> dict[str, Any]:
    quote = "'" if name in _QUOTED else None
    decimal = name == "DECIMAL"
    is_number = quote is None and name not in ("BOOL", "VARBINARY")
    radix = 2 if name in _BINARY_DIGITS else 10
    return {
        "type_name": name,
        "data_type": number,
        "column_size": size,
        "literal_prefix": quote,
        "literal_suffix": quote,
        "create_params": list(params),
        "nullable": _NULLABLE,
        "case_sensitive": name in ("VARCHAR", "NCHAR", "JSON"),
        "searchable": _SEARCHABLE,
        "unsigned_attribute": name.endswith("UNSIGNED") if is_number else None,
        "fixed_prec_scale": False,
        "auto_increment": False if is_number else None,
        "local_type_name": name,
        "minimum_scale": 0 if decimal else None,
        "maximum_scale": size if decimal else None,
        "sql_data_type": number,
        "datetime_subcode": None,
        "num_prec_radix": radix if is_number else None,
        "interval_precision": None,
    }


@cache
def _features() -> Mapping[int, tuple[int, Any]]:
    """Return number → (place of the value's type, value), in the order of numbers."""
    found: dict[int, tuple[int, Any]] = {
        # the server
        0: (_STRING, "Penstock"),
        1: (_STRING, version()),
        2: (_STRING, pa.__version__),
        8: (_INT, 0),  # no transactions
        100: (_INT, 0),  # handles of prepared statements are good for ever
        101: (_INT, 0),
        # names
        503: (_INT, 1),  # in any case of letters
        504: (_STRING, "`"),
        505: (_INT, 1),
        507: (_INT, 3),  # NULLs come last
        508: (_STRINGS, vocabulary()["keywords"]),
        509: (_STRINGS, _functions_of("math")),
        510: (_STRINGS, _functions_of("text")),
        511: (_STRINGS, ["current_user", "database", "server_status", "server_version", "user"]),
        512: (_STRINGS, _functions_of("time")),
        513: (_STRING, "\\"),
        514: (_STRING, ""),
        517: (_MAP, []),  # CAST has no table of conversions here
        # clauses, as bits: what may be grouped, grammar, outer joins, subqueries, UNION
        522: (_INT, 0b11),
        525: (_INT, 0b1),
        526: (_INT, 0b1),
        528: (_INT, 0b110),
        529: (_STRING, "database"),
        530: (_STRING, ""),
        531: (_STRING, "catalog"),
        533: (_INT, 0b100),
        534: (_INT, 0),
        535: (_INT, 0),
        538: (_INT, 0b111),
        540: (_INT, 0b11),
        # transactions and results
        562: (_INT, 0),
        564: (_INT, 0b1),
        567: (_INT, 0b10),
        568: (_INT, 0b10),
        569: (_INT, 0b10),
        570: (_INT, 0),
        571: (_INT, 0),
    }
    found |= {number: (_BOOL, True) for number in _ABILITIES}
    found |= {number: (_BOOL, False) for number in _INABILITIES}
    # 0: there is no bound, or it is of something else
    found |= {number: (_LONG, 0) for number in range(541, 562) if number != 556}
    found |= {543: (_LONG, MAX_COLUMN_NAME), 552: (_LONG, 64), 557: (_LONG, MAX_TEXT)}
    found |= {number: (_LONG, MAX_NAME_BYTES) for number in (559, 561)}
    return dict(sorted(found.items()))


#: SQL, bulk ingestion, CREATE DATABASE, CREATE TABLE, aliases, NULL + NULL, names of tables in a
#: query, expressions in ORDER BY, columns there that are not selected, the catalog's place
_ABILITIES = (4, 10, 501, 502, 515, 516, 518, 519, 520, 521, 532)
#: read only, Substrait, CancelQuery, ingestion as a transaction, CREATE of catalogs, every table
#: listed may be read, LIKE … ESCAPE, NOT NULL, integrity, FOR UPDATE, procedures, correlated
#: subqueries, large objects, transactions and what definitions do to them, batches, savepoints,
#: parameters by name, copies of large objects, functions of procedures
_INABILITIES = (
    *(3, 5, 9, 11, 500, 506, 523, 524, 527, 536, 537, 539),
    *(556, 563, 565, 566, 572, 573, 574, 575, 576),
)


def _functions_of(group: str) -> list[str]:
    return sorted(name for name, function in REGISTRY.items() if function.group == group)


def _union(known: Mapping[int, tuple[int, Any]]) -> pa.Table:
    """Return a table of values of several types."""
    offsets = []
    values: list[list[Any]] = [[] for _ in _VALUES]
    for kind, value in known.values():
        offsets.append(len(values[kind]))
        values[kind].append(value)
    union = pa.UnionArray.from_dense(
        pa.array([kind for kind, _ in known.values()], pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(v, t) for v, (_, t) in zip(values, _VALUES, strict=True)],
        [name for name, _ in _VALUES],
    )
    return pa.Table.from_arrays([_numbers(known), union], schema=FEATURES)


def _numbers(known: Iterable[int]) -> pa.Array:
    return pa.array(list(known), pa.uint32())
