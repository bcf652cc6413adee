"""NOTIFY: addresses that can be reached, events that exist."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from penstock import names
from penstock.sql.plan import Notify
from penstock.sql.planning.refusals import refuse
from penstock.sql.relational import StreamSelect
from penstock.sql.statements import CreateStream, NotifyClause

EVENTS = ("WINDOW_OPEN", "WINDOW_CLOSE")
#: of ws:// and wss://, as TDengine has it
MAX_URL_BYTES = 127
#: of http:// and https://: makers of webhooks put long tokens into them
MAX_WEB_BYTES = 2000
_WEB = ("http", "https")
_SCHEMES = ("ws", "wss", *_WEB, "kafka")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\x9f]")
#: what a request's first line or its Host cannot have
_NOT_IN_REQUESTS = re.compile(r'[^!-~]|["<>\\^`{|}]')
#: a name of a file, whatever the machine
_KEY_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


def plan_notify(statement: CreateStream, windowed: bool) -> Notify | None:
    """Return the NOTIFY clause, checked, without its condition."""
    clause = statement.notify
    if clause is None:
        return None
    if not windowed:
        refuse(statement, "E_NOTIFY_WINDOW", statement.positions.get("notify"))
    _check_urls(statement, clause)
    _check_events(statement, clause)
    _check_key(statement, clause)
    return Notify(
        tuple(dict.fromkeys(clause.urls)),
        tuple(dict.fromkeys(clause.on)),
        bool(clause.history),
        clause.on_failure or "pause",
        clause.signed_by or "",
    )


def check_without_result(statement: CreateStream, query: StreamSelect) -> None:
    """Refuse what only a result table shows, in a stream that has none."""
    if query.window is None:
        refuse(statement, "E_NOTIFY_WINDOW", statement.positions.get("notify"))
    if query.fill is not None:
        refuse(
            statement,
            "E_NOTIFY_ONLY",
            query.fill,
            clause="FILL",
            hint="leave FILL out, or write INTO and the name of a result table",
        )
    trigger = statement.options.trigger
    if trigger is not None and trigger.kind == "max_delay":
        refuse(
            statement,
            "E_NOTIFY_ONLY",
            statement.positions.get("trigger"),
            clause="MAX_DELAY",
            hint="write WINDOW_CLOSE or AT_ONCE, or INTO and the name of a result table",
        )


def _check_urls(statement: CreateStream, clause: NotifyClause) -> None:
    for i, url in enumerate(clause.urls):
        problem = _problem(url)
        if problem:
            refuse(
                statement,
                "E_NOTIFY_URL",
                clause.url_offsets[i] if i < len(clause.url_offsets) else None,
                what=problem,
            )


def _check_events(statement: CreateStream, clause: NotifyClause) -> None:
    for i, event in enumerate(clause.on):
        if event not in EVENTS:
            refuse(
                statement,
                "E_NOTIFY_EVENT",
                clause.on_offsets[i] if i < len(clause.on_offsets) else None,
                event=event,
            )


def _check_key(statement: CreateStream, clause: NotifyClause) -> None:
    """Refuse a key that signs nothing, or whose name no file can have."""
    if clause.signed_by is None:
        return
    problem = None
    if not _KEY_NAME.fullmatch(clause.signed_by):
        problem = "this is no name of a key"
    elif not any(_scheme(url) in _WEB for url in clause.urls):
        problem = "only requests to http:// and https:// are signed"
    if problem:
        refuse(
            statement,
            "E_NOTIFY_KEY",
            statement.positions.get("signed_by"),
            what=problem,
            database=statement.stream.database or "<database>",
        )


def _scheme(url: str) -> str:
    return url.partition(":")[0].lower()


def _problem(url: str) -> str | None:
    """Return what is wrong with *url*, or None for an address that we can connect to."""
    if _scheme(url) == "kafka":
        return _problem_of_topic(url)
    wrong = _problem_of_text(url, _scheme(url) in _WEB)
    if wrong is not None:
        return wrong
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # the parser's words may hold a password
        return "the address cannot be read"
    scheme = parts.scheme.lower()
    if not scheme:
        return "the address has no scheme"
    if scheme not in _SCHEMES:
        return f"'{parts.scheme}' is no scheme of a target"
    if not parts.hostname:
        return "the address has no host"
    if port == 0 or (port is None and scheme not in _WEB):
        return "the address has no port"
    if parts.fragment:
        return "the address has a fragment (#…)"
    return None


def _problem_of_topic(url: str) -> str | None:
    """Return what is wrong with *url*, which is `kafka:…`."""
    _, slashes, topic = url.partition("://")
    if not slashes or not topic:
        return "the address has no topic"
    if not names.is_topic_name(topic):
        return "kafka:// and the name of a topic is all that the address can have"
    if names.is_own_topic(topic):
        return "the topic is, or could be, one of Penstock's or Kafka's own"
    return None


def _problem_of_text(url: str, web: bool) -> str | None:
    """Return what is wrong with the characters of *url*."""
    most = MAX_WEB_BYTES if web else MAX_URL_BYTES
    if len(url.encode()) > most:
        return f"the address has {len(url.encode())} bytes, the limit is {most}"
    if _UNPRINTABLE.search(url):
        return "the address has blanks or control characters in it"
    if web and _NOT_IN_REQUESTS.search(url):
        return "the address has characters that need to be written as %XX"
    return None
