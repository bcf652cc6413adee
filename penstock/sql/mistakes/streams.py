"""CREATE STREAM as TDengine has it since 3.3.7, and the same stream as it is written here.

There the trigger comes first (`CREATE STREAM s INTERVAL(1m) SLIDING(1m) FROM t … INTO r AS SELECT
_twstart, … FROM %%trows`), here the window is part of the query. There INTO and AS may be missing
beside NOTIFY, as here.
"""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place

_WINDOWS = ("INTERVAL", "SLIDING", "SESSION", "STATE_WINDOW", "EVENT_WINDOW", "COUNT_WINDOW")
_TRIGGERS = (*_WINDOWS, "PERIOD", "FROM", "PARTITION", "STREAM_OPTIONS", "NOTIFY")
#: words of both forms that begin a section, as the newer one has them
_SECTIONS = (*_TRIGGERS, "INTO", "OUTPUT_SUBTABLE", "TAGS", "AS")
_PLACEHOLDERS = {
    "_tcurrent_ts": "_wend",
    "_twstart": "_wstart",
    "_twend": "_wend",
    "_twduration": "_wduration",
    "_twrownum": "count(*)",
    "%%tbname": "tbname",
}
_PLACEHOLDER = re.compile("|".join(_PLACEHOLDERS), re.IGNORECASE)
_OPTION = re.compile(r"\b(WATERMARK|MAX_DELAY)\s*\(\s*(\d+[a-z])\s*\)", re.IGNORECASE)
_EVENT = re.compile(
    r"EVENT_WINDOW\s*\((.*?)\)(\s*TRUE_FOR\s*\([^)]*\))?", re.IGNORECASE | re.DOTALL
)
_ADDRESSES = re.compile(r"NOTIFY\s*(\([^)]*\))", re.IGNORECASE)
_NOTIFIED = re.compile(r"WINDOW_(?:OPEN|CLOSE)", re.IGNORECASE)
_MESSAGE = "this is the stream syntax of TDengine 3.3.7 and later"
#: what is shown of one part of a statement
_LONGEST = 120


def _newer_syntax(place: Place) -> SqlSyntaxError | None:
    behind = _behind_name(place)
    if behind is None:
        return None
    at = _first_sign(place, behind)
    if at is None:
        return None
    return place.mistake(_MESSAGE, _rewrite(place, behind), at - place.index)


def _behind_name(place: Place) -> int | None:
    """Return the token behind `CREATE STREAM [IF NOT EXISTS] [db.]name`, or None."""
    words = [token.text.upper() for token in place.tokens[:10]]
    at = 4 if words[1:3] == ["OR", "REPLACE"] else 2
    if words[:1] != ["CREATE"] or words[at - 1 : at] != ["STREAM"]:
        return None
    at += 3 if words[at : at + 3] == ["IF", "NOT", "EXISTS"] else 0
    return at + (3 if words[at + 1 : at + 2] == ["."] else 1)


def _first_sign(place: Place, behind: int) -> int | None:
    """Return the first token that only the newer syntax has there."""
    tokens = place.tokens
    if _begins_with_trigger([token.text.upper() for token in tokens[behind:]]):
        return behind
    for n in range(behind, min(len(tokens), place.index + 2)):
        if tokens[n].text.upper() in ("OUTPUT_SUBTABLE", "STREAM_OPTIONS"):
            return n
        doubled = tokens[n].token_type is TokenType.MOD and n + 1 < len(tokens)
        if doubled and tokens[n + 1].token_type is TokenType.MOD:
            return n
    return None


def _begins_with_trigger(words: list[str]) -> bool:
    """Tell if the *words* behind the name are the newer syntax's. `FROM table window NOTIFY …` is
    ours, too.
    """
    ours = words[:1] == ["FROM"] and not {"INTO", "SELECT"}.intersection(words)
    return bool(words) and words[0] in _TRIGGERS and not ours


def _rewrite(place: Place, behind: int) -> str:
    """Return a hint with the statement as it is written here, as far as it is known."""
    parts = _parts(place, behind)
    name = _text(place, 2, behind).removeprefix("REPLACE STREAM ")
    options = _options(parts.get("STREAM_OPTIONS", ""))
    if "PERIOD" in parts:
        options = " TRIGGER FORCE_WINDOW_CLOSE"
    partition = f" {parts['PARTITION']}" if "PARTITION" in parts else ""
    items, source = _items_and_source(parts)
    notify = _notify(parts.get("NOTIFY", ""))
    behind_from = f"FROM {source}{partition}{_window(parts)}{notify}"
    if notify and "INTO" not in parts and "AS" not in parts:
        return f"the window stands behind the table: CREATE STREAM {name}{options} {behind_from}"
    target = parts.get("INTO", "" if notify else "INTO …") + _subtable(parts)
    return (
        f"write it as in 3.3.6, with the window in the query: CREATE STREAM {name}{options}"
        f"{target and ' '}{target} AS SELECT {items} {behind_from}"
    )


def _parts(place: Place, behind: int) -> dict[str, str]:
    """Return the sections of the statement by their first words; `AS` has the whole query."""
    starts: list[tuple[str, int]] = []
    depth = 0
    for n in range(behind, len(place.tokens)):
        token = place.tokens[n]
        depth += token.token_type is TokenType.L_PAREN
        depth -= token.token_type is TokenType.R_PAREN
        word = token.text.upper() if token.token_type is TokenType.VAR else ""
        if depth == 0 and word in _SECTIONS and not _is_alias(place, n):
            starts.append((word, n))
            if word == "AS":
                break
    ends = [n for _, n in starts[1:]] + [len(place.tokens)]
    return {word: _text(place, n, end) for (word, n), end in zip(starts, ends, strict=True)}


def _is_alias(place: Place, n: int) -> bool:
    """Tell if the token is an AS that no SELECT follows."""
    words = [token.text.upper() for token in place.tokens[n : n + 2]]
    return words[0] == "AS" and words[1:] not in ([], ["SELECT"])


def _text(place: Place, first: int, behind: int) -> str:
    """Return the text of the tokens [first, behind), shortened."""
    if first >= min(behind, len(place.tokens)):
        return "…"
    last = place.tokens[min(behind, len(place.tokens)) - 1]
    begin = place.start + place.tokens[first].start
    text = " ".join(place.source.shown[begin : place.start + last.end + 1].split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _options(text: str) -> str:
    found = {name.upper(): time for name, time in _OPTION.findall(text)}
    watermark = f" WATERMARK {found['WATERMARK']}" if "WATERMARK" in found else ""
    trigger = f" TRIGGER MAX_DELAY {found['MAX_DELAY']}" if "MAX_DELAY" in found else ""
    return trigger + watermark


def _items_and_source(parts: dict[str, str]) -> tuple[str, str]:
    """Return the columns of the query, with the names of the older form, and what it reads: the
    table of the trigger, or its own.
    """
    query = re.sub(r"^AS\s+SELECT\s+", "", parts.get("AS", "…"), flags=re.IGNORECASE)
    items, *rest = re.split(r"\sFROM\s+", query, maxsplit=1, flags=re.IGNORECASE)
    own = rest[0] if rest and not rest[0].startswith("%%") else "…"
    source = re.sub(r"^FROM\b\s*", "", parts.get("FROM", own), flags=re.IGNORECASE)
    return _older_names(items), source or "…"


def _subtable(parts: dict[str, str]) -> str:
    """Return SUBTABLE(…), which is OUTPUT_SUBTABLE there."""
    if "OUTPUT_SUBTABLE" not in parts:
        return ""
    return f" SUBTABLE{_older_names(parts['OUTPUT_SUBTABLE'][len('OUTPUT_SUBTABLE') :])}"


def _notify(text: str) -> str:
    """Return NOTIFY, whose events are texts here."""
    addresses = _ADDRESSES.match(text)
    if addresses is None:
        return ""
    events = _NOTIFIED.findall(text, addresses.end()) or ["WINDOW_CLOSE"]
    shown = ", ".join(f"'{event.upper()}'" for event in events)
    return f" NOTIFY {addresses[1]} ON ({shown})"


def _older_names(text: str) -> str:
    return _PLACEHOLDER.sub(lambda match: _PLACEHOLDERS[match.group().lower()], text)


def _window(parts: dict[str, str]) -> str:
    """Return the window clause."""
    if "PERIOD" in parts:
        return " " + re.sub("^PERIOD", "INTERVAL", parts["PERIOD"], flags=re.IGNORECASE)
    if "EVENT_WINDOW" in parts:
        found = _EVENT.fullmatch(parts["EVENT_WINDOW"])
        return f" EVENT_WINDOW {found[1]}{found[2] or ''}" if found else " EVENT_WINDOW …"
    if "SLIDING" in parts and "INTERVAL" not in parts:
        return " " + re.sub("^SLIDING", "INTERVAL", parts["SLIDING"], flags=re.IGNORECASE)
    return "".join(f" {parts[word]}" for word in _WINDOWS if word in parts)


STREAMS = (_newer_syntax,)
