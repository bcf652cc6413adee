"""Text of statements about databases, tables, functions and snodes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql import statements as st
from penstock.sql.render.parts import (
    column_definition,
    column_definitions,
    comment,
    name,
    optional,
    origin_name,
    parenthesis,
    render,
    value,
    word_if,
    words,
)
from penstock.sql.words import quote_name, quote_string


def _table_options(options: st.TableOptions) -> str:
    inside = ["topic = 'own'"] if options.own_topic else []
    inside += [f"partitions = {options.partitions}"] if options.partitions is not None else []
    return words(
        comment(options.comment),
        optional("KEEP", options.keep),
        f"WITH {parenthesis(inside)}" if inside else None,
    )


def _database_options(options: st.DatabaseOptions) -> str:
    return words(
        f"PRECISION '{options.precision}'" if options.precision else None,
        optional("KEEP", options.keep),
        optional("PARTITIONS", options.partitions),
        optional("MAX_AHEAD", options.max_ahead),
        optional("REPLICA", options.replica),
        optional(
            "DOT_TO_UNDERSCORE",
            None if options.dot_to_underscore is None else int(options.dot_to_underscore),
        ),
    )


@render.register
def _(s: st.CreateDatabase) -> str:
    return words(
        "CREATE DATABASE",
        word_if("IF NOT EXISTS", s.if_not_exists),
        quote_name(s.name),
        _database_options(s.options),
    )


@render.register
def _(s: st.AlterDatabase) -> str:
    return words("ALTER DATABASE", quote_name(s.name), _database_options(s.options))


@render.register
def _(s: st.UseDatabase) -> str:
    return f"USE {quote_name(s.name)}"


@render.register
def _(s: st.CreateStable) -> str:
    head = words(
        "CREATE",
        word_if("VIRTUAL", s.virtual),
        "STABLE",
        word_if("IF NOT EXISTS", s.if_not_exists),
        name(s.table),
    )
    return words(
        head,
        column_definitions(s.columns),
        "TAGS",
        column_definitions(s.tags),
        _table_options(s.options),
    )


@render.register
def _(s: st.CreateTable) -> str:
    kind = "VTABLE" if s.virtual else "TABLE"
    return words(
        "CREATE",
        "STREAM" if s.stream else kind,
        word_if("IF NOT EXISTS", s.if_not_exists),
        name(s.table),
        column_definitions(s.columns),
        _table_options(s.options),
    )


@render.register
def _(s: st.CreateStreamTable) -> str:
    head = words(
        "CREATE STREAM TABLE",
        word_if("IF NOT EXISTS", s.if_not_exists),
        name(s.table),
        column_definitions(s.columns),
    )
    return words(head, f"WITH {parenthesis(_stream_table_options(s.options))}")


def _stream_table_options(o: st.StreamTableSettings) -> Iterator[str]:
    """Yield `option = value` of those that differ from their defaults."""
    group = o.raft_group if isinstance(o.raft_group, int) else value(o.raft_group)
    options: tuple[tuple[str, object], ...] = (
        ("raft_group", group),
        ("cache_limit", o.cache_limit),
        ("key_column", _names(o.key_column)),
        ("retention_minutes", f"{o.retention_minutes:g}" if o.retention_minutes != 1440 else None),
        ("pre_cache", o.pre_cache),
        ("filter_column", _text(o.filter_column)),
        ("timestamp_column", _text(o.timestamp_column)),
        ("key_rule", _text(o.key_rule) if o.key_rule != "first" else None),
        ("time_column", _names(o.time_column)),
        ("status_column", _text(o.status_column)),
        ("async_write", "TRUE" if o.async_write else None),
        ("compress", None if o.compress else "FALSE"),
        ("flush_mode", o.flush_mode or None),
        ("cache_purge_time_column", _text(o.cache_purge_time_column)),
        ("cache_purge_interval", o.cache_purge_interval),
        ("cache_retention_time", o.cache_retention_time),
    )
    for option, given in options:
        if given is not None:
            yield f"{option} = {given}"


def _text(given: str | None) -> str | None:
    return value(given) if given else None


def _names(given: tuple[str, ...]) -> str | None:
    return value(", ".join(quote_name(n) for n in given)) if given else None


def _child(child: st.ChildDef) -> str:
    origins = (
        parenthesis(
            f"{quote_name(c)} FROM {name(t)}.{quote_name(o)}" for c, (t, o) in child.origins
        )
        if child.origins
        else None
    )
    names = parenthesis(map(quote_name, child.tag_names)) if child.tag_names is not None else None
    head = words(
        word_if("IF NOT EXISTS", child.if_not_exists),
        name(child.table),
        origins,
        "USING",
        name(child.stable),
        names,
    )
    return f"{head} TAGS {parenthesis(map(value, child.tag_values))}"


@render.register
def _(s: st.CreateChildren) -> str:
    return words("CREATE", "VTABLE" if s.virtual else "TABLE", " ".join(map(_child, s.children)))


@render.register
def _(s: st.AlterTable) -> str:
    kind = "STABLE" if s.stable else "TABLE"
    return words("ALTER", kind, name(s.table), _alter_action(s))


def _alter_action(s: st.AlterTable) -> str:
    if s.action == "options":
        return _table_options(s.options or st.TableOptions())
    if s.action == "set_tag":
        return "SET TAG " + ", ".join(f"{quote_name(n)} = {value(v)}" for n, v in s.values)
    if s.action == "set_origin":
        origin = "NULL" if s.origin is None else origin_name(s.origin)
        return f"ALTER COLUMN {quote_name(s.name or '')} SET {origin}"
    return _alter_column(s)


def _alter_column(s: st.AlterTable) -> str:
    action = s.action.replace("_", " ").upper()
    if s.definition is not None:
        return f"{action} {column_definition(s.definition)}"
    new_name = quote_name(s.new_name) if s.new_name is not None else None
    return words(action, quote_name(s.name or ""), new_name)


@render.register
def _(s: st.Drop) -> str:
    if s.kind == "snode":
        return f"DROP SNODE ON DNODE {s.names[0].name}"
    items = (
        words(word_if("IF EXISTS", e), name(n)) for n, e in zip(s.names, s.if_exists, strict=True)
    )
    return f"DROP {s.kind.upper()} " + ", ".join(items)


@render.register
def _(s: st.CreateFunction) -> str:
    head = words(
        "CREATE",
        word_if("OR REPLACE", s.or_replace),
        word_if("AGGREGATE", s.aggregate),
        "FUNCTION",
        word_if("IF NOT EXISTS", s.if_not_exists),
    )
    parameters = parenthesis(f"{quote_name(n)} {t}" for n, t in s.parameters)
    return (
        f"{head} {quote_name(s.name)} {parameters} RETURNS {s.returns} LANGUAGE PYTHON AS"
        f" {quote_string(s.code)}"
    )


@render.register
def _(s: st.CreateSnode) -> str:
    return f"CREATE SNODE ON DNODE {s.dnode}"
