"""Statements back to text, in one canonical form: `parse(render(x)) == [x]` for every statement."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import singledispatch

from penstock.sql import statements as st
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Trigger
from penstock.sql.words import quote_name, quote_string


@singledispatch
def render(statement: st.Statement) -> str:
    """The canonical text of *statement*, without a semicolon."""
    raise TypeError(f"no text for {type(statement).__name__}")


# ---------------------------------------------------------------- parts


def name(value: st.Name) -> str:
    """`[database.]name`, quoted where needed."""
    return (quote_name(value.database) + "." if value.database is not None else "") + quote_name(
        value.name
    )


def value(item: st.Value) -> str:
    """A literal as SQL."""
    if item is None:
        return "NULL"
    if isinstance(item, bool):
        return "TRUE" if item else "FALSE"
    if isinstance(item, str):
        return quote_string(item)
    if isinstance(item, st.RelativeTime):
        base = quote_string(str(item.base)) if item.literal else str(item.base)
        return base + "".join(
            f" {'+' if sign > 0 else '-'} {length}" for sign, length in item.steps
        )
    return _decimal(item) if isinstance(item, Decimal) else repr(item)


def _decimal(item: Decimal) -> str:
    # Long forms stay Decimal when read again: a short one is padded with zeros behind the point.
    text = str(item)
    if len(text.lstrip("-")) > 16:
        return text
    mantissa, _, exponent = text.partition("E")
    mantissa += "" if "." in mantissa else "."
    return mantissa + "0" * (17 - len(text.lstrip("-"))) + (f"E{exponent}" if exponent else "")


def _joined(items: Iterable[str]) -> str:
    return "(" + ", ".join(items) + ")"


def _words(*parts: str | None) -> str:
    return " ".join(p for p in parts if p)


def _flag(word: str, given: bool | None) -> str | None:
    return None if given is None else f"{word} {int(given)}"


def _optional(word: str, given: object) -> str | None:
    return None if given is None else f"{word} {given}"


def _if(word: str, given: bool) -> str | None:
    return word if given else None


def _comment(text: str | None) -> str | None:
    return None if text is None else f"COMMENT {quote_string(text)}"


def _column(column: st.ColumnDef) -> str:
    origin = (
        f"FROM {name(column.origin[0])}.{quote_name(column.origin[1])}" if column.origin else None
    )
    key = _if("COMPOSITE KEY", column.composite_key)
    return _words(quote_name(column.name), str(column.type), key, _comment(column.comment), origin)


def _columns(columns: Iterable[st.ColumnDef]) -> str:
    return _joined(_column(c) for c in columns)


def _table_options(options: st.TableOptions) -> str:
    inside = ["topic = 'own'"] if options.own_topic else []
    inside += [f"partitions = {options.partitions}"] if options.partitions is not None else []
    return _words(
        _comment(options.comment),
        _optional("KEEP", options.keep),
        f"WITH {_joined(inside)}" if inside else None,
    )


def _database_options(options: st.DatabaseOptions) -> str:
    return _words(
        f"PRECISION '{options.precision}'" if options.precision else None,
        _optional("KEEP", options.keep),
        _optional("PARTITIONS", options.partitions),
        _optional("MAX_AHEAD", options.max_ahead),
        _optional("REPLICA", options.replica),
        _optional(
            "DOT_TO_UNDERSCORE",
            None if options.dot_to_underscore is None else int(options.dot_to_underscore),
        ),
    )


# ---------------------------------------------------------------- databases and tables


@render.register
def _(s: st.CreateDatabase) -> str:
    return _words(
        "CREATE DATABASE",
        _if("IF NOT EXISTS", s.if_not_exists),
        quote_name(s.name),
        _database_options(s.options),
    )


@render.register
def _(s: st.AlterDatabase) -> str:
    return _words("ALTER DATABASE", quote_name(s.name), _database_options(s.options))


@render.register
def _(s: st.UseDatabase) -> str:
    return f"USE {quote_name(s.name)}"


@render.register
def _(s: st.CreateStable) -> str:
    head = _words(
        "CREATE",
        _if("VIRTUAL", s.virtual),
        "STABLE",
        _if("IF NOT EXISTS", s.if_not_exists),
        name(s.table),
    )
    return _words(head, _columns(s.columns), "TAGS", _columns(s.tags), _table_options(s.options))


@render.register
def _(s: st.CreateTable) -> str:
    kind = "STREAM" if s.stream else "VTABLE" if s.virtual else "TABLE"
    return _words(
        "CREATE",
        kind,
        _if("IF NOT EXISTS", s.if_not_exists),
        name(s.table),
        _columns(s.columns),
        _table_options(s.options),
    )


@render.register
def _(s: st.CreateStreamTable) -> str:
    o = s.options
    group = o.raft_group if isinstance(o.raft_group, int) else value(o.raft_group)
    inside = [f"raft_group = {group}", f"cache_limit = {o.cache_limit}"]
    if o.key_column:
        inside.append(f"key_column = {value(', '.join(quote_name(k) for k in o.key_column))}")
    inside += (
        [f"retention_minutes = {o.retention_minutes:g}"] if o.retention_minutes != 1440 else []
    )
    inside += [f"pre_cache = {o.pre_cache}"] if o.pre_cache is not None else []
    inside += [f"filter_column = {value(o.filter_column)}"] if o.filter_column else []
    inside += [f"timestamp_column = {value(o.timestamp_column)}"] if o.timestamp_column else []
    inside += [f"key_rule = {value(o.key_rule)}"] if o.key_rule != "first" else []
    if o.time_column:
        inside.append(f"time_column = {value(', '.join(quote_name(c) for c in o.time_column))}")
    inside += [f"status_column = {value(o.status_column)}"] if o.status_column else []
    inside += ["async_write = TRUE"] if o.async_write else []
    inside += ["compress = FALSE"] if not o.compress else []
    inside += [f"flush_mode = {o.flush_mode}"] if o.flush_mode else []
    inside += (
        [f"cache_purge_time_column = {value(o.cache_purge_time_column)}"]
        if o.cache_purge_time_column
        else []
    )
    inside += [f"cache_purge_interval = {o.cache_purge_interval}"] if o.cache_purge_interval else []
    inside += [f"cache_retention_time = {o.cache_retention_time}"] if o.cache_retention_time else []
    head = _words(
        "CREATE STREAM TABLE",
        _if("IF NOT EXISTS", s.if_not_exists),
        name(s.table),
        _columns(s.columns),
    )
    return _words(head, f"WITH {_joined(inside)}")


def _child(child: st.ChildDef) -> str:
    origins = (
        _joined(f"{quote_name(c)} FROM {name(t)}.{quote_name(o)}" for c, (t, o) in child.origins)
        if child.origins
        else None
    )
    names = _joined(map(quote_name, child.tag_names)) if child.tag_names is not None else None
    head = _words(
        _if("IF NOT EXISTS", child.if_not_exists),
        name(child.table),
        origins,
        "USING",
        name(child.stable),
        names,
    )
    return f"{head} TAGS {_joined(map(value, child.tag_values))}"


@render.register
def _(s: st.CreateChildren) -> str:
    return _words("CREATE", "VTABLE" if s.virtual else "TABLE", " ".join(map(_child, s.children)))


@render.register
def _(s: st.AlterTable) -> str:
    head = _words("ALTER", "STABLE" if s.stable else "TABLE", name(s.table))
    if s.action == "options":
        return _words(head, _table_options(s.options or st.TableOptions()))
    if s.action == "set_tag":
        return f"{head} SET TAG " + ", ".join(f"{quote_name(n)} = {value(v)}" for n, v in s.values)
    if s.action == "set_origin":
        origin = "NULL" if s.origin is None else f"{name(s.origin[0])}.{quote_name(s.origin[1])}"
        return f"{head} ALTER COLUMN {quote_name(s.name or '')} SET {origin}"
    head = f"{head} {s.action.replace('_', ' ').upper()}"
    if s.definition is not None:
        return f"{head} {_column(s.definition)}"
    return _words(
        head, quote_name(s.name or ""), quote_name(s.new_name) if s.new_name is not None else None
    )


@render.register
def _(s: st.Drop) -> str:
    if s.kind == "snode":
        return f"DROP SNODE ON DNODE {s.names[0].name}"
    items = (
        _words(_if("IF EXISTS", e), name(n)) for n, e in zip(s.names, s.if_exists, strict=True)
    )
    return f"DROP {s.kind.upper()} " + ", ".join(items)


@render.register
def _(s: st.CreateFunction) -> str:
    head = _words(
        "CREATE",
        _if("OR REPLACE", s.or_replace),
        _if("AGGREGATE", s.aggregate),
        "FUNCTION",
        _if("IF NOT EXISTS", s.if_not_exists),
    )
    parameters = _joined(f"{quote_name(n)} {t}" for n, t in s.parameters)
    return (
        f"{head} {quote_name(s.name)} {parameters} RETURNS {s.returns} LANGUAGE PYTHON AS"
        f" {quote_string(s.code)}"
    )


@render.register
def _(s: st.CreateSnode) -> str:
    return f"CREATE SNODE ON DNODE {s.dnode}"


# ---------------------------------------------------------------- data and information


def _part(part: st.InsertPart) -> str:
    using = None
    if part.stable is not None:
        names = _joined(map(quote_name, part.tag_names)) if part.tag_names is not None else None
        using = _words(
            "USING", name(part.stable), names, "TAGS", _joined(map(value, part.tag_values))
        )
    columns = _joined(map(quote_name, part.columns)) if part.columns is not None else None
    return _words(
        name(part.table),
        using,
        columns,
        "VALUES",
        " ".join(_joined(map(value, row)) for row in part.rows),
    )


@render.register
def _(s: st.Insert) -> str:
    return "INSERT INTO " + " ".join(map(_part, s.parts))


@render.register
def _(s: st.InsertSelect) -> str:
    columns = _joined(map(quote_name, s.columns)) if s.columns is not None else None
    return _words("INSERT INTO", name(s.table), columns, render(s.select))


@render.register
def _(s: st.Delete) -> str:
    return _words(
        "DELETE FROM", name(s.table), None if s.where is None else f"WHERE {to_sql(s.where)}"
    )


@render.register
def _(s: st.Query) -> str:
    return to_sql(s.query)


@render.register
def _(s: st.Describe) -> str:
    return f"DESCRIBE {name(s.table)}"


@render.register
def _(s: st.Show) -> str:
    what = (quote_name(s.database) + "." if s.database is not None else "") + s.what
    return _words("SHOW", what, None if s.like is None else f"LIKE {quote_string(s.like)}")


@render.register
def _(s: st.ShowCreate) -> str:
    return f"SHOW CREATE {s.kind.upper()} {name(s.name)}"


# ---------------------------------------------------------------- streams


def _trigger(trigger: Trigger | None) -> str | None:
    if trigger is None:
        return None
    word = {"continuous_window_close": "RECALCULATE"}.get(trigger.kind)
    every = None if trigger.every is None else _words(word, str(trigger.every))
    return _words("TRIGGER", trigger.kind.upper(), every)


def _options(options: st.StreamOptions) -> str:
    history = _flag("FILL_HISTORY", options.fill_history)
    return _words(
        _trigger(options.trigger),
        _optional("WATERMARK", options.watermark),
        _flag("IGNORE EXPIRED", options.ignore_expired),
        _flag("IGNORE UPDATE", options.ignore_update),
        _optional("DELETE_MARK", options.delete_mark),
        _words(history, _if("ASYNC", options.fill_history_async)),
        _optional("IDLE_TIMEOUT", options.idle_timeout),
        _optional("ON_ERROR", options.on_error and options.on_error.upper()),
        _optional("MAX_RESULTS", options.max_results),
        _optional("MAX_STATE", options.max_state),
    )


def _tag(tag: st.TargetTag) -> str:
    return _words(quote_name(tag.name), str(tag.type) if tag.type else None, _comment(tag.comment))


def _notify(notify: st.NotifyClause | None) -> str | None:
    if notify is None:
        return None
    return _words(
        "NOTIFY",
        _joined(map(quote_string, notify.urls)) if notify.urls else None,
        "ON",
        _joined(map(quote_string, notify.on)),
        _flag("NOTIFY_HISTORY", notify.history),
        _optional("ON_FAILURE", notify.on_failure and notify.on_failure.upper()),
    )


@render.register
def _(s: st.CreateStream) -> str:
    columns = None
    if s.target_columns is not None:
        columns = _joined(
            _words(quote_name(c.name), _if("COMPOSITE KEY", c.composite_key))
            for c in s.target_columns
        )
    return _words(
        "CREATE",
        _if("OR REPLACE", s.or_replace),
        "STREAM",
        _if("IF NOT EXISTS", s.if_not_exists),
        name(s.stream),
        _options(s.options),
        "INTO",
        name(s.target),
        columns,
        None if s.tags is None else f"TAGS {_joined(map(_tag, s.tags))}",
        None if s.subtable is None else f"SUBTABLE({to_sql(s.subtable)})",
        "AS",
        to_sql(s.query),
        _notify(s.notify),
    )


@render.register
def _(s: st.Explain) -> str:
    return f"EXPLAIN {render(s.statement)}"


def _managed(word: str, stream: st.Name, if_exists: bool) -> str:
    return _words(word, "STREAM", _if("IF EXISTS", if_exists), name(stream))


@render.register
def _(s: st.PauseStream) -> str:
    return _managed("PAUSE", s.stream, s.if_exists)


@render.register
def _(s: st.ResumeStream) -> str:
    return _words(
        "RESUME STREAM",
        _if("IF EXISTS", s.if_exists),
        _if("IGNORE UNTREATED", s.ignore_untreated),
        name(s.stream),
    )


@render.register
def _(s: st.FlushStream) -> str:
    return _managed("FLUSH", s.stream, s.if_exists)


@render.register
def _(s: st.RecalculateStream) -> str:
    return _words(
        "RECALCULATE STREAM",
        name(s.stream),
        "FROM",
        value(s.begin),
        None if s.until is None else f"TO {value(s.until)}",
    )


@render.register
def _(s: st.AlterStream) -> str:
    return _words("ALTER STREAM", name(s.stream), _options(s.options))


# ---------------------------------------------------------------- other deployments


def _setting(key: str, value: str) -> str:
    return f"{quote_name(key)} = {value if value in ('true', 'false') else quote_string(value)}"


@render.register
def _(s: st.CreateExternalStream) -> str:
    columns = None if s.columns is None else _columns(s.columns)
    settings = ", ".join(_setting(k, v) for k, v in s.settings)
    return _words(
        "CREATE EXTERNAL STREAM",
        _if("IF NOT EXISTS", s.if_not_exists),
        name(s.stream),
        columns,
        "SETTINGS",
        settings,
    )


@render.register
def _(s: st.CreateView) -> str:
    target = None if s.target is None else f"INTO {name(s.target)}"
    on_error = None if s.on_error is None else f"ON_ERROR {s.on_error.upper()}"
    return _words(
        "CREATE MATERIALIZED VIEW",
        _if("IF NOT EXISTS", s.if_not_exists),
        name(s.view),
        target,
        on_error,
        "AS",
        to_sql(s.query),
    )


@render.register
def _(s: st.SteerView) -> str:
    return f"SYSTEM {s.action.upper()} MATERIALIZED VIEW {name(s.view)}"


# ---------------------------------------------------------------- users


@render.register
def _(s: st.CreateUser) -> str:
    head = _words(
        "CREATE USER",
        _if("IF NOT EXISTS", s.if_not_exists),
        quote_name(s.name),
        "PASS",
        quote_string(s.password),
    )
    return _words(head, _if("ENABLE 0", not s.enabled))


@render.register
def _(s: st.AlterUser) -> str:
    password = None if s.password is None else f"PASS {quote_string(s.password)}"
    return _words("ALTER USER", quote_name(s.name), password, _flag("ENABLE", s.enabled))


@render.register
def _(s: st.CreateRole) -> str:
    return _words("CREATE ROLE", _if("IF NOT EXISTS", s.if_not_exists), quote_name(s.name))


def _given(take: bool, what: str, grantee: str) -> str:
    return (
        f"{'REVOKE' if take else 'GRANT'} {what} {'FROM' if take else 'TO'} {quote_name(grantee)}"
    )


@render.register
def _(s: st.Grant) -> str:
    place = "*.*" if s.name is None else f"{s.kind.upper()} {name(s.name)}"
    return _given(s.take, f"{', '.join(s.rights)} ON {place}", s.grantee)


@render.register
def _(s: st.GrantRole) -> str:
    return _given(s.take, f"ROLE {quote_name(s.role)}", s.grantee)


@render.register
def _(s: st.RevokeTokens) -> str:
    return f"REVOKE TOKENS FROM {quote_name(s.user)}"
