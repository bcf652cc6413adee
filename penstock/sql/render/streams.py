"""Text of statements about streams."""

from __future__ import annotations

from penstock.sql import statements as st
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Trigger
from penstock.sql.render.parts import (
    comment,
    flag,
    name,
    optional,
    parenthesis,
    render,
    value,
    word_if,
    words,
)
from penstock.sql.words import quote_name, quote_string


def _trigger(trigger: Trigger | None) -> str | None:
    if trigger is None:
        return None
    word = {"continuous_window_close": "RECALCULATE"}.get(trigger.kind)
    every = None if trigger.every is None else words(word, str(trigger.every))
    return words("TRIGGER", trigger.kind.upper(), every)


def _options(options: st.StreamOptions) -> str:
    history = flag("FILL_HISTORY", options.fill_history)
    return words(
        _trigger(options.trigger),
        optional("WATERMARK", options.watermark),
        flag("IGNORE EXPIRED", options.ignore_expired),
        flag("IGNORE UPDATE", options.ignore_update),
        optional("DELETE_MARK", options.delete_mark),
        words(history, word_if("ASYNC", options.fill_history_async)),
        optional("IDLE_TIMEOUT", options.idle_timeout),
        optional("ON_ERROR", options.on_error and options.on_error.upper()),
        optional("MAX_RESULTS", options.max_results),
        optional("MAX_STATE", options.max_state),
    )


def _tag(tag: st.TargetTag) -> str:
    return words(quote_name(tag.name), str(tag.type) if tag.type else None, comment(tag.comment))


def _notify(notify: st.NotifyClause | None) -> str | None:
    if notify is None:
        return None
    return words(
        "NOTIFY",
        parenthesis(map(quote_string, notify.urls)) if notify.urls else None,
        "ON",
        parenthesis(map(quote_string, notify.on)),
        None if notify.where is None else f"WHERE {to_sql(notify.where)}",
        flag("NOTIFY_HISTORY", notify.history),
        optional("ON_FAILURE", notify.on_failure and notify.on_failure.upper()),
        None if notify.signed_by is None else f"SIGNED_BY {quote_string(notify.signed_by)}",
    )


@render.register
def _(s: st.CreateStream) -> str:
    columns = None
    if s.target_columns is not None:
        columns = parenthesis(
            words(quote_name(c.name), word_if("COMPOSITE KEY", c.composite_key))
            for c in s.target_columns
        )
    return words(
        "CREATE",
        word_if("OR REPLACE", s.or_replace),
        "STREAM",
        word_if("IF NOT EXISTS", s.if_not_exists),
        name(s.stream),
        _options(s.options),
        None if s.target is None else f"INTO {name(s.target)}",
        columns,
        None if s.tags is None else f"TAGS {parenthesis(map(_tag, s.tags))}",
        None if s.subtable is None else f"SUBTABLE({to_sql(s.subtable)})",
        "AS",
        to_sql(s.query),
        _notify(s.notify),
    )


@render.register
def _(s: st.Explain) -> str:
    return f"EXPLAIN {render(s.statement)}"


def _stream_action(word: str, stream: st.Name, if_exists: bool) -> str:
    return words(word, "STREAM", word_if("IF EXISTS", if_exists), name(stream))


@render.register
def _(s: st.PauseStream) -> str:
    return _stream_action("PAUSE", s.stream, s.if_exists)


@render.register
def _(s: st.ResumeStream) -> str:
    return words(
        "RESUME STREAM",
        word_if("IF EXISTS", s.if_exists),
        word_if("IGNORE UNTREATED", s.ignore_untreated),
        name(s.stream),
    )


@render.register
def _(s: st.FlushStream) -> str:
    return _stream_action("FLUSH", s.stream, s.if_exists)


@render.register
def _(s: st.RecalculateStream) -> str:
    return words(
        "RECALCULATE STREAM",
        name(s.stream),
        "FROM",
        value(s.begin),
        None if s.until is None else f"TO {value(s.until)}",
    )


@render.register
def _(s: st.AlterStream) -> str:
    return words("ALTER STREAM", name(s.stream), _options(s.options))
