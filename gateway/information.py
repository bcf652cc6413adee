"""What there is: SHOW and the tables of `information_schema`.

Owns what the lists say and the small queries over them (DuckDB over lists made on the spot).
Refuses tables it does not have. Blocks on Redis: called from worker threads.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import redis
from sqlglot import exp

from gateway import columns
from gateway.answers import table_of
from gateway.children import child_names, count_held, text
from gateway.describing import name_of
from penstock import foreign, names, nodes
from penstock.access import Access, visible
from penstock.catalog.model import (
    Child,
    Database,
    External,
    Principal,
    StreamEntry,
    Table,
    User,
    View,
)
from penstock.catalog.principals import Object, kind_of
from penstock.catalog.view import Catalog
from penstock.duck import Bounds, Engine, explain_error, print_query
from penstock.errors import SqlSemanticError
from penstock.records import DeadLetter
from penstock.redis_link import ask
from penstock.sql.plan import Duration
from penstock.sql.secret import hide
from penstock.sql.statements import Show

SCHEMA = "information_schema"
#: what a query over lists may take; it opens no file
_BOUNDS = Bounds(memory="256MB", threads=1, seconds=30.0)
#: what a notifier says of its targets holds for so long
_TOLD_SECONDS = 15.0
#: what lanes count, in the order of the columns that show it
_COUNTED = ("rows_in", "rows_out", "late", "failed", "state_bytes")


class Information:
    """Answers questions about the catalog as it is now, as one user may see it."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        client: redis.Redis,
        version: str,
        access: Access,
        user: str = "",
        letters: Callable[[], list[DeadLetter]] = list,
    ) -> None:
        """*letters*: reads the newest dead letters."""
        self._letters = letters
        self._all = catalog
        self._redis = client
        self._version = version
        self._access = access
        self._user = user
        self._makers: dict[str, Callable[[], pa.Table]] = {
            "ins_databases": self._databases,
            "ins_stables": self._stables,
            "ins_tables": self._tables,
            "ins_columns": self._columns,
            "ins_tags": self._tags,
            "ins_streams": self._streams,
            "ins_stream_tasks": self._tasks,
            "ins_external_streams": self._externals,
            "ins_views": self._views,
            "ins_users": self._users,
            "ins_roles": self._roles,
            "ins_user_privileges": self._grants,
            "ins_dnodes": self._dnodes,
            "ins_snodes": self._snodes,
            "ins_functions": self._functions,
            "ins_late_rows": self._late,
            "ins_dead_letters": self._dead_letters,
        }

    def seen_by(self, user: str) -> Information:
        """The same, as *user* may see it."""
        return Information(self._all, self._redis, self._version, self._access, user, self._letters)

    @property
    def catalog(self) -> Catalog:
        """As far as the user sees it."""
        return visible(self._all(), self._access, self._user)

    # ---------------------------------------------------------------- statements

    def query(self, tree: exp.Query) -> pa.Table | None:
        """The answer to a query over `information_schema` alone, or over no table; None: it is
        about rows.
        """
        tables = list(tree.find_all(exp.Table))
        if any(t.db.lower() != SCHEMA for t in tables):
            return None
        if not tables and tree.find(exp.Star) is not None:
            raise SqlSemanticError("there is no FROM that * could mean", hint="add FROM table")
        if not tables and not self._is_plain(tree):
            return None
        tree = tree.copy()
        found: dict[str, pa.Table] = {}
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name not in self._makers:
                known = ", ".join(sorted(self._makers))
                raise SqlSemanticError(
                    f"{SCHEMA} has no table {name}", code="E_NO_TABLE", hint=f"it has {known}"
                )
            found[name] = self._makers[name]()
            table.set("db", None)
            table.set("this", exp.to_identifier(name))
        for call in list(tree.find_all(exp.Anonymous)):
            values = {
                "server_version": self._version,
                "client_version": self._version,
                "database": None,
                "current_user": self._user,
            }
            if call.name.lower() in values:
                value = values[call.name.lower()]
                literal: exp.Expression = exp.null() if value is None else exp.Literal.string(value)
                call.replace(
                    exp.alias_(literal, f"{call.name.lower()}()", quoted=True)
                    if isinstance(call.parent, exp.Select)
                    else literal
                )
        return self.run(tree, found)

    @staticmethod
    def _is_plain(tree: exp.Query) -> bool:
        """A SELECT without FROM whose functions DuckDB need not know the time for: `SELECT 1`,
        `SELECT server_version()`.
        """
        names_ = {f.name.lower() for f in tree.find_all(exp.Anonymous)}
        return names_ <= {"server_version", "client_version", "database", "current_user"}

    def run(self, tree: exp.Query, tables: dict[str, pa.Table]) -> pa.Table:
        """The answer to a query over *tables*, and nothing else."""
        text = print_query(tree, tables.keys())
        engine = Engine(_BOUNDS)
        try:
            engine.confine()
            for name, table in tables.items():
                engine.con.register(name, table)
            with engine.in_time():
                return engine.answer(text)
        except duckdb.Error as wrong:
            raise SqlSemanticError(
                "the query cannot be answered", detail=explain_error(wrong).message
            ) from None
        finally:
            engine.close()

    def show(self, statement: Show, database: str | None) -> pa.Table:
        """SHOW … [LIKE …]."""
        what = statement.what.upper()
        home = statement.database or database
        if what == "DATABASES":
            listed = [(d.name,) for d in self.catalog.databases()]
            answer = table_of((("name", columns.TEXT),), [*listed, (SCHEMA,)])
        elif what == "FUNCTIONS":
            answer = self._functions()
        elif what == "STREAMS":
            answer = self._streams(statement.database)
        elif what in ("STABLES", "TABLES", "VTABLES"):
            if home is None:
                raise statement.error(
                    "which database?", code="E_WHICH_DATABASE", hint=f"SHOW name.{what}"
                )
            made = self._stables(home) if what == "STABLES" else self._tables(home)
            if what != "STABLES":
                virtual = [str(t).startswith("VIRTUAL_") for t in made.column("type").to_pylist()]
                made = made.filter(
                    pa.array([v is (what == "VTABLES") for v in virtual], pa.bool_())
                )
            answer = made.select(["stable_name" if what == "STABLES" else "table_name"])
        elif what == "EXTERNAL STREAMS":
            answer = self._externals(statement.database)
        elif what == "VIEWS":
            answer = self._views(statement.database)
        elif what in ("USERS", "ROLES", "GRANTS"):
            answer = {"USERS": self._users, "ROLES": self._roles, "GRANTS": self._grants}[what]()
        elif what in ("DNODES", "SNODES"):
            answer = self._makers[f"ins_{what.lower()}"]()
        elif what == "VARIABLES":
            answer = table_of(
                (("name", columns.TEXT), ("value", columns.TEXT)), (("version", self._version),)
            )
        else:
            raise statement.error(f"SHOW {what} is not available", code="E_UNSUPPORTED_STATEMENT")
        if statement.like is None:
            return answer
        pattern = statement.like
        return answer.filter(
            pa.array(
                [likes(pattern, str(v or "")) for v in answer.column(0).to_pylist()], pa.bool_()
            )
        )

    # ---------------------------------------------------------------- lists

    def _databases(self) -> pa.Table:
        catalog = self.catalog
        rows: list[tuple[Any, ...]] = []
        for d in catalog.databases():
            count = sum(self._count(t) if t.tags else 1 for t in catalog.tables(d.name))
            rows.append(
                (
                    d.name,
                    count,
                    d.partitions,
                    d.replica,
                    _or(d.keep, "forever"),
                    d.precision,
                    str(d.max_ahead),
                    d.topic,
                    "ready" if d.move is None else f"moving to {d.move.partitions} partitions",
                )
            )
        for name in (SCHEMA,):
            rows.append((name, len(self._makers), None, None, None, None, None, None, "ready"))
        return table_of(columns.DATABASES, rows)

    def _stables(self, database: str | None = None) -> pa.Table:
        stables = [t for t in self.catalog.tables(database) if t.tags]
        return table_of(
            columns.STABLES,
            [
                (t.name, t.database, len(t.columns), len(t.tags), t.options.get("comment"), t.topic)
                for t in stables
            ],
        )

    def _tables(self, database: str | None = None) -> pa.Table:
        rows: list[tuple[Any, ...]] = []
        for table in self.catalog.tables(database):
            virtual = "VIRTUAL_" if table.kind == "virtual" else ""
            if table.tags:
                kind = f"{virtual}CHILD_TABLE"
                rows += [
                    (n, table.database, len(table.columns), table.name, i, kind)
                    for n, i in self._children(table).items()
                ]
            else:
                rows.append(
                    (
                        table.name,
                        table.database,
                        len(table.columns),
                        None,
                        table.id,
                        f"{virtual}NORMAL_TABLE",
                    )
                )
        return table_of(columns.TABLES, rows)

    def _columns(self) -> pa.Table:
        rows = []
        for t in self.catalog.tables():
            kind = ("VIRTUAL_" if t.kind == "virtual" else "") + (
                "SUPER_TABLE" if t.tags else "NORMAL_TABLE"
            )
            rows += [
                (t.name, t.database, kind, c.name, str(c.type), c.type.bytes(), "")
                for c in t.columns
            ]
            rows += [
                (t.name, t.database, kind, c.name, str(c.type), c.type.bytes(), "TAG")
                for c in t.tags
            ]
        return table_of(columns.COLUMNS, rows)

    def _tags(self) -> pa.Table:
        rows = []
        catalog = self.catalog
        for table in catalog.tables():
            for child in catalog.children(table.id):
                values = (*child.tags, *(None,) * (len(table.tags) - len(child.tags)))
                rows += [
                    (
                        child.name,
                        table.database,
                        table.name,
                        t.name,
                        str(t.type),
                        None if v is None else str(v),
                    )
                    for t, v in zip(table.tags, values, strict=False)
                ]
        return table_of(columns.TAGS, rows)

    def _streams(self, database: str | None = None) -> pa.Table:
        rows = []
        for s in self.catalog.streams(database):
            status, message = self._status(s)
            p = s.plan
            trigger = p.trigger.kind.upper() + (f" {p.trigger.every}" if p.trigger.every else "")
            rows.append(
                (
                    s.name,
                    s.created,
                    s.id,
                    hide(p.sql),
                    status,
                    p.source.database,
                    p.source.child or p.source.table,
                    p.target.database,
                    p.target.table,
                    str(p.watermark),
                    trigger,
                    p.path,
                    message,
                    *self._figures(s),
                    p.max_results or None,
                    p.max_state or None,
                    self._targets(s)[1] if p.notify is not None and p.notify.urls else None,
                )
            )
        return table_of(columns.STREAMS, rows)

    def _figures(self, stream: StreamEntry) -> tuple[int, int, int, int, int, int, str | None]:
        """Rows in and out, late and failed, bytes of state, records not worked on yet, the newest
        complaint.
        """
        found = [
            json.loads(v) for f, v in self._progress(stream).items() if f.startswith(names.STATS)
        ]
        rows_in, rows_out, late, failed, size = (sum(s[k] for s in found) for k in _COUNTED)
        topics = [
            *self._all().source_topics(stream.plan),
            *([names.EXCHANGE] if stream.plan.path == "exchange" else []),
        ]
        beats = (
            ask(lambda: self._redis.mget([names.query_heartbeat(t) for t in topics]))
            if topics
            else []
        )
        lag = sum(int(json.loads(b)["lag"]) for b in beats if b is not None)
        return (
            rows_in,
            rows_out,
            late,
            failed,
            size,
            lag,
            next((s["error"] for s in found if s["error"]), None),
        )

    def _late(self) -> pa.Table:
        """Rows that streams have dropped as late, out of the newest dead letters, for who may read
        the streams' sources.
        """
        catalog = self.catalog
        rows = []
        seen = set()
        for letter in self._letters():
            stream = catalog.stream_by_id(letter.stream) if letter.stream is not None else None
            key = (letter.topic, letter.partition, letter.offset, letter.stream, letter.value)
            if (
                letter.code != "E_LATE"
                or stream is None
                or letter.value is None
                or key in seen
                or not self._reads_source(stream)
            ):
                continue
            seen.add(key)  # what was published twice around a crash counts once
            time = stream.plan.source.time_column
            for line in letter.value.splitlines():
                try:
                    row = json.loads(line)
                    shown = json.dumps(
                        {k: v for k, v in row.items() if not k.startswith("_") and k != "tbname"}
                    )
                except ValueError:  # longer than a letter may be, and cut there
                    row = {}
                    shown = line.decode(errors="replace")
                rows.append(
                    (
                        stream.name,
                        stream.database,
                        letter.time,
                        row.get("tbname"),
                        row.get(time),
                        shown,
                    )
                )
        return table_of(columns.LATE, rows)

    def _reads_source(self, stream: StreamEntry) -> bool:
        """Whether this user may read the rows that a stream reads."""
        sources = (self._all().table_by_id(t) for t in stream.plan.source.table_ids)
        return all(self._access.may(self._user, "READ", t) for t in sources)

    def _about(self, letter: DeadLetter) -> StreamEntry | View | None:
        """The stream or view that could not use a row; None: a reader of all rows, or it is
        gone.
        """
        entry = self._all().by_id(letter.stream) if letter.stream is not None else None
        return entry if isinstance(entry, StreamEntry | View) else None

    def _reads(self, entry: StreamEntry | View | None, topic: str) -> bool:
        """Whether this user may see rows of *topic* that *entry*, or a reader of all rows, could
        not use.
        """
        if isinstance(entry, StreamEntry):
            return self._reads_source(entry)
        source = self._all().by_id(entry.source_id) if entry is not None else None
        if isinstance(source, Table | External):
            return self._access.may(self._user, "READ", source)
        # what is in no database is for who may read everything
        home = (
            self._all().database(names.database_of(topic)) if names.is_ingest_topic(topic) else None
        )
        return self._access.may(self._user, "READ", home)

    def _dead_letters(self) -> pa.Table:
        """The newest records and rows that could not be used; those of databases, streams and views
        whose rows one may read.
        """
        rows = []
        for letter in self._letters():
            entry = self._about(letter)
            if not self._reads(entry, letter.topic):
                continue
            name, home = (entry.name, entry.database) if entry is not None else (None, None)
            about = (
                letter.code,
                letter.reason,
                letter.time,
                (letter.value or b"").decode(errors="replace"),
            )
            rows.append(
                (letter.topic, letter.partition, letter.offset, letter.reader, name, home, *about)
            )
        return table_of(columns.LETTERS, rows)

    def _externals(self, database: str | None = None) -> pa.Table:
        rows: list[tuple[Any, ...]] = [
            (
                e.name,
                e.database,
                e.type,
                ",".join("|".join(s) for s in e.shards),
                e.remote_database,
                e.remote_name,
                e.user,
                e.secure,
                e.created,
                None,
                None,
                None,
                None,
            )
            for e in self.catalog.externals(database)
        ]
        for table in self.catalog.tables(database):
            if (topic := foreign.of(table)) is not None:
                said = self._pumped(table.id)
                rows.append(
                    (
                        table.name,
                        table.database,
                        "kafka",
                        topic.brokers,
                        "",
                        topic.topic,
                        topic.user,
                        topic.protocol.endswith("SSL"),
                        None,
                        said.get("state", "starting"),
                        int(said.get("rows", 0)),
                        int(said["lag"]) if "lag" in said else None,
                        said.get("error") or None,
                    )
                )
        return table_of(columns.EXTERNALS, rows)

    def _pumped(self, entry_id: int) -> dict[str, str]:
        """What the federation room says of a view, or of the reader of a foreign topic."""
        held = ask(lambda: self._redis.hgetall(names.view_status(entry_id)))
        return {text(k): text(v) for k, v in held.items()}

    def _views(self, database: str | None = None) -> pa.Table:
        rows = []
        for v in self.catalog.views(database):
            said = self._pumped(v.id)
            status = "paused" if v.status == "paused" else said.get("state", "starting")
            rows.append(
                (
                    v.name,
                    v.database,
                    status,
                    name_of(self.catalog, v.source_id),
                    name_of(self.catalog, v.target_id),
                    int(said.get("rows", 0)),
                    int(said["lag"]) if "lag" in said else None,
                    float(said["behind"]) if "behind" in said else None,
                    said.get("error") or None,
                    v.created,
                    v.sql,
                    v.on_error.upper(),
                    int(said.get("dropped", 0)),
                )
            )
        return table_of(columns.VIEWS, rows)

    def _functions(self) -> pa.Table:
        """All functions; what they are made of for who has ADMIN."""
        catalog = self.catalog
        rows = []
        shown = self._access.may(self._user, "ADMIN", None)
        for f in catalog.functions():
            users = sum(
                any(used.id == f.id for used in s.plan.functions) for s in catalog.streams()
            )
            rows.append(
                (
                    f.name,
                    f.aggregate,
                    ", ".join(map(str, f.parameters)),
                    str(f.returns),
                    "Python",
                    users,
                    f.code if shown else None,
                )
            )
        return table_of(columns.FUNCTIONS, rows)

    def _tasks(self) -> pa.Table:
        rows = []
        for s in self.catalog.streams():
            progress = self._progress(s)
            for field, value in sorted(progress.items()):
                if ":" not in field or field.startswith(names.STATS):
                    continue
                filling = field.startswith(names.FILLING)
                task = field.removeprefix(names.FILLING)
                live = value.isdigit() and not filling
                level = "exchange" if task.startswith(names.EXCHANGE) else "scan"
                broken = field.startswith(names.FAILED) or f"{names.FAILED}{field}" in progress
                status = (
                    "failed"
                    if broken
                    else "init"
                    if filling
                    else {"running": "ready"}.get(s.status, s.status)
                )
                stats = json.loads(
                    progress.get(f"{names.STATS}{task.removeprefix(names.FAILED)}", "{}")
                )
                figures = *(stats.get(name, 0) for name in _COUNTED), stats.get("error") or None
                about = (s.name, s.database, s.id, task, level, status)
                note = f"history {value} %" if filling else value
                rows.append(
                    (*about, int(value) if live else None, None if live else note, *figures)
                )
        return table_of(columns.TASKS, rows)

    def _users(self) -> pa.Table:
        """All users for who may change them, else oneself. What a password became is not among the
        columns.
        """
        catalog = self._all()
        root = self._access.root
        roles = {r.id: r.name for r in catalog.roles()}
        rows: list[tuple[Any, ...]] = [(root, 1, 1, "", None)] if self._manages(root) else []
        for u in catalog.users():
            if self._manages(u.name):
                rows.append(
                    (
                        u.name,
                        0,
                        int(u.enabled),
                        ", ".join(roles[r] for r in u.roles if r in roles),
                        u.created,
                    )
                )
        return table_of(columns.USERS, rows)

    def _roles(self) -> pa.Table:
        catalog = self._all()
        rows = []
        for role in catalog.roles():
            having = [
                u.name for u in catalog.users() if role.id in u.roles and self._manages(u.name)
            ]
            if having or self._manages(""):
                rows.append((role.name, ", ".join(having)))
        return table_of(columns.ROLES, rows)

    def _grants(self) -> pa.Table:
        """Rights of users and roles; those of roles for who has them."""
        catalog = self._all()
        rows: list[tuple[Any, ...]] = (
            [(self._access.root, "user", "ALL", "all", "*", "*")]
            if self._manages(self._access.root)
            else []
        )
        mine = catalog.user(self._user)
        principals: list[Principal] = [u for u in catalog.users() if self._manages(u.name)]
        principals += [
            r
            for r in catalog.roles()
            if self._manages("") or (mine is not None and r.id in mine.roles)
        ]
        for principal in principals:
            kind = "user" if isinstance(principal, User) else "role"
            for grant in principal.grants:
                target = catalog.by_id(grant.object_id) if grant.object_id else None
                if grant.object_id == 0:
                    rows.append((principal.name, kind, grant.right, "all", "*", "*"))
                elif isinstance(target, Database):
                    rows.append((principal.name, kind, grant.right, "database", target.name, "*"))
                elif isinstance(target, Object):
                    rows.append(
                        (
                            principal.name,
                            kind,
                            grant.right,
                            kind_of(target),
                            target.database,
                            target.name,
                        )
                    )
        return table_of(columns.GRANTS, rows)

    def _manages(self, name: str) -> bool:
        return name == self._user or self._access.may(self._user, "ADMIN", None)

    def _dnodes(self) -> pa.Table:
        found = ask(lambda: nodes.read(self._redis, time.time()))
        rows = [
            (
                n.id,
                n.host,
                "ready" if n.online else "offline",
                int(n.started * 1000),
                " ".join(n.rooms),
                None if n.online else _ago(n.seen),
            )
            for n in found
        ]
        return table_of(columns.DNODES, rows)

    def _snodes(self) -> pa.Table:
        online = {
            n.id for n in ask(lambda: nodes.read(self._redis, time.time())) if "snode" in n.rooms
        }
        rows = []
        for snode in self.catalog.snodes():
            held = ask(functools.partial(self._redis.get, names.snode_report(snode.dnode)))
            said: dict[str, Any] = json.loads(held) if held else {}
            note = said.get("note", "") if snode.dnode in online else "its room does not run"
            status = "offline" if snode.dnode not in online else "failing" if note else "ready"
            endpoint = said.get("endpoint")
            rows.append(
                (
                    snode.dnode,
                    endpoint,
                    snode.created,
                    status,
                    said.get("target"),
                    said.get("backups", 0),
                    said.get("newest"),
                    note or None,
                )
            )
        return table_of(columns.SNODES, rows)

    def _status(self, stream: StreamEntry) -> tuple[str, str]:
        progress = self._progress(stream)
        failed = [
            f"{k.removeprefix(names.FAILED)}: {v}"
            for k, v in sorted(progress.items())
            if k.startswith(names.FAILED)
        ]
        if failed:
            return "failed", "; ".join(failed)
        if stream.status != "running":
            return stream.status, stream.reason
        if held := progress.get(names.HELD):
            return "paused", held
        if held := progress.get(names.QUOTA):
            return "throttled", held
        if ask(lambda: self._redis.exists(names.safe_mode())):
            return "stopped", "safe mode: DROP what must not run, then start without --safe"
        filling = [int(v) for k, v in progress.items() if k.startswith(names.FILLING)]
        if filling:
            return "init", f"history {min(filling)} %"
        wanted = expected_fields(self._all(), stream)
        live = len(wanted & progress.keys())
        return (
            ("ready", self._targets(stream)[0])
            if live >= len(wanted)
            else ("init", f"live in {live} of {len(wanted)} partitions")
        )

    def _targets(self, stream: StreamEntry) -> tuple[str, int]:
        """Which targets of NOTIFY are down and why, and how many events wait for targets."""
        said = [
            json.loads(v)
            for f, v in sorted(self._progress(stream).items())
            if f.startswith(names.TARGETS)
        ]
        now = time.time()
        said = [s for s in said if now - s["at"] < _TOLD_SECONDS]
        waiting = sum(s["waiting"] for s in said)
        down = list(dict.fromkeys(why for s in said for why in s["down"]))
        return "; ".join([*down, f"{waiting} events wait"] if down else []), waiting

    def _progress(self, stream: StreamEntry) -> dict[str, str]:
        held = ask(lambda: self._redis.hgetall(names.stream_status(stream.id)))
        return {text(k): text(v) for k, v in held.items()}

    def _children(self, table: Table) -> dict[str, int]:
        """Child tables from the catalog and from rows: name → id (0 where there is none)."""
        made: list[Child] = self.catalog.children(table.id)
        return {
            **dict.fromkeys(child_names(self._redis, table.id), 0),
            **{c.name: c.id for c in made},
        }

    def _count(self, table: Table) -> int:
        """Number of child tables; Redis is asked for names of the catalog's only, some at a
        time.
        """
        made = [c.name for c in self.catalog.children(table.id)]
        held = ask(lambda: self._redis.hlen(names.children(table.id)))
        return len(made) + held - (count_held(self._redis, table.id, made) if held else 0)


def expected_fields(catalog: Catalog, stream: StreamEntry) -> set[str]:
    """Fields of `names.stream_status` that say a stream is live everywhere."""
    fields = {
        f"{topic}:{p}"
        for topic, partitions in catalog.source_topics(stream.plan).items()
        for p in range(partitions)
    }
    if stream.plan.path == "exchange":
        fields |= {f"{names.EXCHANGE}:{p}" for p in range(names.BUILT_IN_TOPICS[names.EXCHANGE])}
    return fields


def _ago(seen: float) -> str:
    return f"last heard of {max(time.time() - seen, 0):.0f} s ago"


def _or(value: Duration | None, otherwise: str) -> str:
    return otherwise if value is None else str(value)


def likes(pattern: str, text: str) -> bool:
    """Whether *text* is LIKE *pattern*, in any case of letters: each part between `%` is taken
    where it first fits.
    """
    first, *rest = pattern.lower().split("%")
    text = text.lower()
    if not rest:
        return len(first) == len(text) and _fits(first, text, 0)
    *middle, last = rest
    at = len(first)
    if (
        len(text) < at + len(last)
        or not _fits(first, text, 0)
        or not _fits(last, text, len(text) - len(last))
    ):
        return False
    end = len(text) - len(last)
    for part in filter(None, middle):
        while at + len(part) <= end and not _fits(part, text, at):
            at += 1
        at += len(part)
        if at > end:
            return False
    return True


def _fits(part: str, text: str, at: int) -> bool:
    """Whether *text* has *part* at a position; `_` is any character."""
    return all(p in ("_", c) for p, c in zip(part, text[at : at + len(part)], strict=True))
