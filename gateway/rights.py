"""Rights that each statement needs: pure decisions, statement in, rights on objects out.

Owns one rule for every kind of statement. A kind without one needs ADMIN on everything, so what is
new is closed until somebody says who may; `tests/unit/gateway/test_rights.py` names such kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Literal

from sqlglot import exp

from gateway.information.scope import is_own
from gateway.known_selects import KnownSelect, TableName, opens_windows, tables_of
from penstock.catalog.model import Right
from penstock.catalog.principals import Object
from penstock.catalog.view import Catalog
from penstock.sql import statements as st


@dataclass(frozen=True)
class Need:
    """`right` None: any right at all. A `database` of "" is none: the statement will be refused for
    that.
    """

    right: Right | None
    kind: Literal["all", "database", "table", "stream", "view"] = "all"
    database: str = ""
    name: str = ""


@dataclass(frozen=True)
class Asked:
    """Who asks, in which database, of what there is."""

    user: str
    database: str | None
    catalog: Catalog
    #: tells whether the user may know that something exists
    sees: Callable[[Object], bool]


ADMIN = (Need("ADMIN"),)
Needs = tuple[Need, ...]


@singledispatch
def needs(statement: st.Statement, asked: Asked) -> Needs:
    """Rights that *statement* needs, in the order to ask for them."""
    return ADMIN


def _table(right: Right | None, name: st.Name, asked: Asked) -> Need:
    return Need(right, "table", name.database or asked.database or "", name.name)


def _stream(right: Right | None, name: st.Name, asked: Asked) -> Need:
    return Need(right, "stream", name.database or asked.database or "", name.name)


def _view(right: Right | None, name: st.Name, asked: Asked) -> Need:
    return Need(right, "view", name.database or asked.database or "", name.name)


def _home(right: Right | None, name: st.Name, asked: Asked) -> Need:
    return Need(right, "database", name.database or asked.database or "")


def _read(query: exp.Query, asked: Asked) -> Needs:
    """READ on every table of a query; `information_schema` shows everybody what is theirs."""
    return _read_tables(tables_of(query), asked, opens_windows(query))


def _read_tables(tables: Sequence[TableName], asked: Asked, windows: bool) -> Needs:
    homes = ((home or asked.database or "", name) for home, name in tables)
    return tuple(
        dict.fromkeys(
            _read_one(home, name, asked, windows) for home, name in homes if not is_own(home)
        )
    )


def _read_one(database: str, name: str, asked: Asked, windows: bool) -> Need:
    """READ on a table; on the result table of the stream whose open windows a query asks for, or on
    the stream where it has none.
    """
    stream = asked.catalog.stream(database, name) if windows else None
    if stream is not None and not stream.plan.target.stored:
        return Need("READ", "stream", database, name)
    if stream is not None:
        database = stream.plan.target.database
        name = stream.plan.target.table
    return Need("READ", "table", database, name)


# ---------------------------------------------------------------- rows


@needs.register
def _(s: st.Insert, asked: Asked) -> Needs:
    found = []
    for part in s.parts:
        if part.stable is None:
            found.append(_table("WRITE", part.table, asked))
        else:  # a child table is made by the way
            home = part.stable.database or part.table.database
            found.append(_table("WRITE", st.Name(part.stable.name, home), asked))
    return tuple(dict.fromkeys(found))


@needs.register
def _(s: st.InsertSelect, asked: Asked) -> Needs:
    return (_table("WRITE", s.table, asked), *_read(s.select.query, asked))


@needs.register
def _(s: st.Delete, asked: Asked) -> Needs:
    return (_table("WRITE", s.table, asked),)


@needs.register
def _(s: st.Query, asked: Asked) -> Needs:
    return _read(s.query, asked)


@needs.register
def _(s: KnownSelect, asked: Asked) -> Needs:
    return _read_tables(s.tables, asked, windows=False)


@needs.register
def _(s: st.Describe, asked: Asked) -> Needs:
    if is_own(s.table.database or asked.database):
        return ()
    return (_table(None, s.table, asked),)


@needs.register(st.Show)
def _(s: st.Show, asked: Asked) -> Needs:
    return ()  # lists have what the user may see


@needs.register(st.ShowTags)
@needs.register(st.ShowIndexes)
def _(s: st.ShowTags | st.ShowIndexes, asked: Asked) -> Needs:
    return (_table(None, s.table, asked),)


@needs.register
def _(s: st.ShowTableTags, asked: Asked) -> Needs:
    return (_table(None, s.stable, asked),)


@needs.register
def _(s: st.ShowDistribution, asked: Asked) -> Needs:
    return (_table("READ", s.table, asked),)


@needs.register
def _(s: st.ShowCreate, asked: Asked) -> Needs:
    if s.kind == "database":
        return (Need(None, "database", s.name.name),)
    if s.kind == "materialized view":
        return (_view(None, s.name, asked),)
    return (_stream(None, s.name, asked) if s.kind == "stream" else _table(None, s.name, asked),)


@needs.register
def _(s: st.UseDatabase, asked: Asked) -> Needs:
    return () if is_own(s.name) else (Need(None, "database", s.name),)


@needs.register
def _(s: st.Explain, asked: Asked) -> Needs:
    return needs(s.statement, asked)


# ---------------------------------------------------------------- databases and tables


@needs.register(st.CreateDatabase)
def _(s: st.CreateDatabase, asked: Asked) -> Needs:
    return (Need("CREATE"),)


@needs.register
def _(s: st.AlterDatabase, asked: Asked) -> Needs:
    return (Need("ALTER", "database", s.name),)


@needs.register(st.CreateStable)
@needs.register(st.CreateTable)
def _(s: st.CreateStable | st.CreateTable, asked: Asked) -> Needs:
    sources = (c.origin[0] for c in s.columns if c.origin is not None)
    return (
        _home("CREATE", s.table, asked),
        *(_table("READ", n, asked) for n in dict.fromkeys(sources)),
    )


@needs.register
def _(s: st.CreateStreamTable, asked: Asked) -> Needs:
    return (_home("CREATE", s.table, asked),)


@needs.register
def _(s: st.CreateChildren, asked: Asked) -> Needs:
    found = []
    for child in s.children:
        found.append(
            _table(
                "WRITE",
                st.Name(child.stable.name, child.stable.database or child.table.database),
                asked,
            )
        )
        found += [_table("READ", origin[0], asked) for _, origin in child.origins]
    return tuple(dict.fromkeys(found))


@needs.register
def _(s: st.AlterTable, asked: Asked) -> Needs:
    own = _table("WRITE" if s.action == "set_tag" else "ALTER", s.table, asked)
    return (own,) if s.origin is None else (own, _table("READ", s.origin[0], asked))


@needs.register
def _(s: st.Drop, asked: Asked) -> Needs:
    if s.kind == "database":
        return tuple(Need("DROP", "database", n.name) for n in s.names)
    if s.kind in ("table", "stable", "external stream"):
        return tuple(_table("DROP", n, asked) for n in s.names)
    if s.kind == "stream":
        return tuple(_stream("DROP", n, asked) for n in s.names)
    if s.kind == "materialized view":
        return tuple(_view("DROP", n, asked) for n in s.names)
    return (Need("FUNCTION"),) if s.kind == "function" else ADMIN


@needs.register
def _(s: st.CreateFunction, asked: Asked) -> Needs:
    """Code that the mesh runs: where the settings allow any, a right of its own decides whose."""
    return (Need("FUNCTION"),)


# ---------------------------------------------------------------- streams


@needs.register
def _(s: st.CreateStream, asked: Asked) -> Needs:
    """The stream itself runs with the mesh's own rights: what its maker may read and write is asked
    here, once.
    """
    home = s.stream.database or asked.database or ""
    found = [Need("CREATE", "database", home), *_read(s.query, asked)]
    if s.target is not None:
        found += _into(s.target, asked)
    if s.or_replace and asked.catalog.stream(home, s.stream.name) is not None:
        found.append(Need("DROP", "stream", home, s.stream.name))
    return tuple(dict.fromkeys(found))


def _into(target: st.Name, asked: Asked) -> Needs:
    """WRITE where the result goes, or CREATE where that is still to be made.

    CREATE comes first for a target that the user may not know of: who lacks it gets the answer for
    what does not exist.
    """
    home = target.database or asked.database or ""
    create = Need("CREATE", "database", home)
    write = Need("WRITE", "table", home, target.name)
    known = asked.catalog.table(home, target.name) or asked.catalog.external(home, target.name)
    if known is None:
        return (create,)
    return (write,) if asked.sees(known) else (create, write)


@needs.register
def _(s: st.CreateView, asked: Asked) -> Needs:
    return tuple(
        dict.fromkeys(
            (
                _home("CREATE", s.view, asked),
                *_read(s.query, asked),
                *_into(s.target or s.view, asked),
            )
        )
    )


@needs.register
def _(s: st.SteerView, asked: Asked) -> Needs:
    return (_view("ALTER", s.view, asked),)


@needs.register
def _(s: st.CreateExternalStream, asked: Asked) -> Needs:
    """Files of this machine are for those who may do everything: the other side of a stream is sent
    what is in them.
    """
    if any(key in ("password_file", "ca_file", "ssl_ca_cert_file") for key, _ in s.settings):
        return ADMIN
    return (_home("CREATE", s.stream, asked),)


@needs.register(st.PauseStream)
@needs.register(st.ResumeStream)
@needs.register(st.FlushStream)
@needs.register(st.RecalculateStream)
@needs.register(st.AlterStream)
def _(
    s: st.PauseStream | st.ResumeStream | st.FlushStream | st.RecalculateStream | st.AlterStream,
    asked: Asked,
) -> Needs:
    return (_stream("ALTER", s.stream, asked),)


# ---------------------------------------------------------------- users


@needs.register
def _(s: st.AlterUser, asked: Asked) -> Needs:
    """One's own password is one's own."""
    return () if s.enabled is None and s.name.lower() == asked.user.lower() else ADMIN


@needs.register
def _(s: st.RevokeTokens, asked: Asked) -> Needs:
    return () if s.user.lower() == asked.user.lower() else ADMIN


@needs.register(st.CreateUser)
@needs.register(st.CreateRole)
@needs.register(st.Grant)
@needs.register(st.GrantRole)
@needs.register(st.CreateSnode)
def _(s: st.Statement, asked: Asked) -> Needs:
    return ADMIN
