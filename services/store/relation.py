"""One table as DuckDB sees it: segments and tail together, every row once, in its newest version.

Most tables only grow: all their segments are fresh and the relation is a plain union, so filters
reach the Parquet files. Where rows may replace earlier ones, only the keys found in files that are
not fresh (and in the tail) are resolved; all other rows stay a plain scan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl

from penstock.catalog.stored import present
from penstock.rows.versions import CLEAR, DELETE, MERGE
from penstock.storage import segments
from penstock.storage.segments import RangeDelete, Segment
from services.store import plain_files, set_tags
from services.store.flush import SegmentLayout, to_ticks, to_wire
from services.store.footers import footer
from services.store.tail import PartitionView
from services.store.tail_rows import TailRows, tail_rows
from services.store.times import TICKS

#: DuckDB's type of times in milliseconds
_MILLISECONDS = "TIMESTAMP_MS"
#: types of columns that are shown as another type
_AS_DECLARED: Mapping[str, str] = {}
#: DuckDB reads times in microseconds; it need not compute each anew
_AS_READ: Mapping[str, str] = {_MILLISECONDS: ""}


@dataclass(frozen=True)
class TablePart:
    """One source partition of a table at one moment."""

    partition: int
    found: tuple[Segment, ...]
    frames: tuple[pl.DataFrame, ...]
    deletes: tuple[RangeDelete, ...]
    #: child table → tag → value where ALTER TABLE … SET TAG changed it
    tags: dict[str, dict[str, Any]]


def parts(
    root: str, table_id: int, views: dict[int, PartitionView], topic: str = ""
) -> list[TablePart]:
    """Freeze a table's image over all its partitions."""
    made = []
    for partition, view in views.items():
        found = segments.segments(
            segments.directory(root, table_id, partition, topic), view.position.next
        )
        deletes = tuple(d for d in view.deletes if d.table_id == table_id)
        made.append(
            TablePart(
                partition,
                tuple(found),
                view.frames.get(table_id, ()),
                deletes,
                view.tags.get(table_id, {}),
            )
        )
    return made


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


#: virtual column → (what it is in a part, its DuckDB type)
PLACES = {"_tp_sn": ("_offset", "BIGINT"), "_tp_shard": ("_part", "INTEGER")}


class Relation:
    """Registers a table's parts with one DuckDB connection under a private prefix and gives the SQL
    of its live rows.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        prefix: str,
        layout: SegmentLayout,
        columns: Sequence[tuple[str, str]],
        image: Sequence[TablePart],
        *,
        places: Collection[str] = (),
    ) -> None:
        """`columns`: (name, DuckDB type) of the present definition, tbname excluded; older files
        lacking one show NULL. `places`: which of PLACES, where in the log they stand, rows have as
        well.
        """
        self._places = [name for name in PLACES if name in places]
        self._con = con
        self._prefix = prefix
        self._layout = layout
        self._columns = columns
        self._image = image
        #: column → its names in the parts
        self._stored = {name: layout.stored.get(name, (name,)) for name, _ in columns}
        #: what is not in segments
        self._tails = [
            tail_rows(part.partition, part.frames, part.found, layout)
            for part in image
            if part.frames
        ]

    def sql(self, tables: Sequence[str] | None = None) -> str:
        """A SELECT of the live rows: `tbname`, then the table's columns and tags; *tables* narrows
        to child tables.
        """
        return self._with_tags(self._rows(tables))

    def _with_tags(self, rows: str) -> str:
        """Tags that were set later count for all rows of their child table."""
        changed = {child: tags for part in self._image for child, tags in part.tags.items()}
        if not changed:
            return rows
        changed = {child: present(self._stored, tags) for child, tags in changed.items()}
        set_later = {tag for tags in changed.values() for tag in tags}
        named = sorted(set_later & {n for n, _ in self._columns})
        name = f"{self._prefix}_tags"
        types = dict(self._columns)
        lines = set_tags.lines(changed, {tag: types[tag] for tag in named})
        self._con.register(name, pl.DataFrame(lines, infer_schema_length=None).to_arrow())
        shown = ", ".join(
            set_tags.value(n, kind) if n in named else f"r.{quote(n)}" for n, kind in self._columns
        )
        shown += "".join(f", r.{name}" for name in self._places)
        return f"SELECT r.tbname, {shown} FROM ({rows}) r LEFT JOIN {name} t ON r.tbname = t.tbname"

    def _rows(self, tables: Sequence[str] | None) -> str:
        plain = self._plain_sources(tables)
        if plain is not None:
            return " UNION ALL ".join(plain)
        sources, dirty = self._sources()
        everything = self._narrow(" UNION ALL BY NAME ".join(sources), tables)
        names = self._names()
        if not dirty:
            return f"SELECT {names} FROM ({everything})"
        key = ", ".join(quote(k) for k in self._layout.keys)
        clean = ""
        versions = everything
        if len(dirty) < len(sources) - 1:
            touched = " UNION ".join(f"SELECT {key} FROM ({d})" for d in dirty)
            same = " AND ".join(f"a.{quote(k)} = d.{quote(k)}" for k in self._layout.keys)
            clean = (
                f"SELECT {names} FROM ({everything}) a WHERE NOT EXISTS (SELECT 1 FROM ({touched})"
                f" d WHERE {same}) UNION ALL "
            )
            versions = (
                f"SELECT * FROM ({everything}) a WHERE EXISTS (SELECT 1 FROM ({touched}) d WHERE"
                f" {same})"
            )
        if self._merges(sources):
            versions = self._fill_merges(versions, key)
        place = f"row_number() OVER (PARTITION BY {key} ORDER BY _offset DESC, _row DESC)"
        newest = f"SELECT * FROM ({versions}) QUALIFY {place} = 1"
        return f"{clean}SELECT {names} FROM ({newest}) WHERE _op <> 1"

    def _plain_sources(self, tables: Sequence[str] | None) -> list[str] | None:
        """Return the SQL of the rows of files and tails, where none of them replaces another and
        DuckDB need not look at each file before it begins.
        """
        if "_tp_shard" in self._places or any(part.deletes for part in self._image):
            return None
        if any(tail.may_replace for tail in self._tails):
            return None
        files = self._plain_files()
        if files is None:
            return None
        made = [self._plain_tail(tail, tables) for tail in self._tails]
        if files:
            made.insert(0, f"SELECT {self._names(_AS_READ)} FROM ({self._narrow(files, tables)})")
        return made

    def _plain_files(self) -> str | None:
        """Return the SQL of all rows of files that hold nothing else; "" where there are none."""
        files = [segment for part in self._image for segment in part.found]
        if not files and self._tails:
            return ""
        held = [name for names in self._stored.values() for name in names]
        found = plain_files.find(files, held, self._layout.precision)
        if found is None:
            return None
        return f"SELECT * FROM read_parquet([{', '.join(literal(str(s.path)) for s in found)}])"

    def _plain_tail(self, tail: TailRows, tables: Sequence[str] | None) -> str:
        """Register a tail; return the SQL of its rows, with times as those of files are read."""
        name = self._register(tail)
        there = {
            column: tuple(held for held in names if held in tail.rows.columns)
            for column, names in self._stored.items()
        }
        listed = self._names({_MILLISECONDS: "TIMESTAMP"}, there)
        return f"SELECT {listed} FROM ({self._narrow(f'SELECT * FROM {name}', tables)})"

    def _register(self, tail: TailRows) -> str:
        """Let DuckDB read the rows of a tail; return their name."""
        name = f"{self._prefix}_tail{tail.partition}"
        self._con.register(name, to_wire(tail.rows, self._layout).to_arrow())
        return name

    def _sources(self) -> tuple[list[str], list[str]]:
        """Return the SQL of everything that holds rows, and of that which may replace others."""
        sources = [self._template()]
        dirty: list[str] = []
        for part in self._image:
            for fresh in (True, False):
                files = self._file_sources(part, fresh, len(sources))
                sources += files
                if not fresh:
                    dirty += files
        for tail in self._tails:
            name = self._register(tail)
            sources.append(f"SELECT *, {tail.partition} AS _part FROM {name}")
            if tail.may_replace:
                dirty.append(f"SELECT * FROM {name}")
        return sources, dirty

    def _file_sources(self, part: TablePart, fresh: bool, number: int) -> list[str]:
        """Return the SQL of a part's segments that are fresh or not.

        Args:
            number: of the first source.
        """
        files = [s for s in part.found if s.fresh is fresh]
        far = [s for s in files if footer(s.path, self._layout.precision).far_times]
        sources = [self._mend(s, part.partition, number + i) for i, s in enumerate(far)]
        paths = [literal(str(s.path)) for s in files if s not in far]
        if paths:
            sources.append(
                f"SELECT *, {part.partition} AS _part FROM read_parquet([{', '.join(paths)}],"
                " union_by_name=true)"
            )
        return sources

    def _narrow(self, rows: str, tables: Sequence[str] | None) -> str:
        """Leave out rows of other child tables than *tables*, and those that a DELETE took."""
        only = ""
        if tables is not None:
            only = f" WHERE tbname IN ({', '.join(literal(t) for t in tables)})"
        rows = f"SELECT * FROM ({rows}){only}"
        hits = [self._hit(p.partition, d) for p in self._image for d in p.deletes]
        return f"SELECT * FROM ({rows}) WHERE NOT ({' OR '.join(hits)})" if hits else rows

    def _names(
        self,
        types: Mapping[str, str] = _AS_DECLARED,
        stored: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """Return the SELECT list of the table's columns and of the places asked for.

        Args:
            types: column type → the one that is made of it, where that is another; "": none is
                made, see `_AS_READ`.
            stored: column → its names where the rows are; None: in all parts.
        """
        held = self._stored if stored is None else stored
        columns = (
            _column(name, types.get(kind, kind), kind, held[name]) for name, kind in self._columns
        )
        places = (f"{PLACES[name][0]} AS {name}" for name in self._places)
        return ", ".join(["tbname", *columns, *places])

    def _mend(self, segment: Segment, partition: int, number: int) -> str:
        """Register a segment of an earlier version with values that are no times, which DuckDB
        cannot read: here they are NULL.
        """
        rows = segments.read([segment], time_column=self._layout.time_column)
        assert rows is not None
        name = f"{self._prefix}_far{number}"
        self._con.register(name, to_wire(to_ticks(rows, self._layout), self._layout).to_arrow())
        return f"SELECT *, {partition} AS _part FROM {name}"

    def _merges(self, sources: Sequence[str]) -> bool:
        """Whether any version leaves columns as they were: the statistics of the files mostly say
        it.
        """
        looks = " UNION ALL ".join(
            f"(SELECT 1 FROM ({source}) WHERE _op = 2 LIMIT 1)" for source in sources
        )
        return self._con.execute(f"SELECT count(*) > 0 FROM ({looks})").fetchall() == [(True,)]

    def _template(self) -> str:
        """No rows, all columns: gives the union its names and types, and an empty table its
        shape.
        """
        typed = ", ".join(
            f"CAST(NULL AS {t}) AS {quote(held)}"
            for n, t in self._columns
            for held in self._stored[n]
        )
        types = {
            "tbname": "VARCHAR",
            "_op": "TINYINT",
            "_offset": "BIGINT",
            "_row": "UINTEGER",
            "_part": "INTEGER",
        }
        fixed = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in types.items())
        return f"SELECT {fixed}, {typed} WHERE false"

    def _hit(self, partition: int, delete: RangeDelete) -> str:
        unit = TICKS[self._layout.precision]
        low_high = (
            f"{unit}({quote(self._layout.time_column)}) BETWEEN {delete.low} AND {delete.high}"
        )
        tables = (
            ""
            if delete.tables is None
            else f" AND tbname IN ({', '.join(literal(t) for t in delete.tables)})"
        )
        return f"(_part = {partition} AND _offset < {delete.offset} AND {low_high}{tables})"

    def _fill_merges(self, versions: str, key: str) -> str:
        """Fill a merge version's NULLs from the versions since the last whole one. A value is
        packed, so that the NULL that a clear leaves counts as one.
        """
        whole = (
            f"sum(CASE WHEN _op < {MERGE} THEN 1 ELSE 0 END)"
            f" OVER (PARTITION BY {key} ORDER BY _offset, _row)"
        )
        life = f"SELECT *, {whole} AS _life FROM ({versions})"
        fixed = {k.lower() for k in self._layout.keys}
        values = [
            held for n, _ in self._columns if n.lower() not in fixed for held in self._stored[n]
        ]
        if not values:
            return versions
        over = f"OVER (PARTITION BY {key}, _life ORDER BY _offset, _row)"
        said = [(quote(n), f"last_value({_pack(quote(n))} IGNORE NULLS) {over}") for n in values]
        filled = ", ".join(f"struct_extract({latest}, 'v') AS {held}" for held, latest in said)
        return f"SELECT * REPLACE ({filled}) FROM ({life})"


def _column(name: str, made: str, kind: str, held: Sequence[str]) -> str:
    """Return an entry of a SELECT list: a column by its name.

    Args:
        made: type that its value gets; "": the one that it has.
        kind: its own type.
        held: its names where the rows are.
    """
    values = ", ".join(map(quote, held))
    value = f"coalesce({values})" if len(held) > 1 else values or f"CAST(NULL AS {kind})"
    return f"{value if not made else f'CAST({value} AS {made})'} AS {quote(name)}"


def _pack(column: str) -> str:
    """What a version says of *column*, packed; NULL: nothing."""
    value = f"struct_pack(v := CASE WHEN _op <> {CLEAR} THEN {column} END)"
    return f"CASE WHEN _op <> {DELETE} AND {column} IS NOT NULL THEN {value} END"
