"""What a dead letter holds, and what whoever finds it can do about it."""

from __future__ import annotations

from typing import Literal

from penstock.records import DeadLetter

#: rows as lines of JSON; results of a stream, as lines of JSON; a record as it was
Kind = Literal["row", "result", "record"]

_OF_ROWS = ("E_EXPRESSION", "E_LATE", "E_WRONG_PARTITION", "E_TOO_FAR_AHEAD")
#: only source rows have an operation; in the text of a value, JSON writes the quotes otherwise
_OPERATION = b'"_op":'

_ADVICE: dict[tuple[str, Kind], str] = {
    ("E_LATE", "row"): (
        "The table has the rows. RECALCULATE STREAM computes their windows with them."
    ),
    ("E_EXPRESSION", "row"): (
        "The table has the rows. If the stream is wrong, mend it, then RECALCULATE STREAM. If a"
        " value is wrong, write the row again with a right one."
    ),
    ("E_EXPRESSION", "result"): (
        "A result cannot be sent again. Mend the stream or its target, then RECALCULATE STREAM:"
        " the rows that it was made of are in the table."
    ),
    ("E_WRONG_PARTITION", "row"): (
        "The rows are in no table. Send them again: the gateway writes them to their partition."
    ),
    ("E_TOO_FAR_AHEAD", "row"): (
        "The rows are in no table. Mend their time, or raise MAX_AHEAD of the database, and send"
        " them again."
    ),
    ("E_UNKNOWN_SCHEMA", "record"): (
        "Nobody can read the record. Whoever wrote it has to write it again, framed with the id of"
        " its table's schema."
    ),
    ("E_MALFORMED", "record"): (
        "Nobody can read the record. Whoever wrote it has to write it again with right values."
    ),
    ("E_MOVED", "record"): (
        "The record is in no table. Whoever wrote it has to publish it to the topic that the reason"
        " names."
    ),
    ("E_POISON", "record"): (
        "The streams have left the record out, the table has it. Once what killed the operator is"
        " mended, RECALCULATE each STREAM of the table."
    ),
    ("E_ROW", "row"): (
        "Make the row fit the view's target, and write it again in the view's source."
    ),
    ("E_ROW_TOO_LARGE", "row"): "Write a smaller row again in the view's source.",
}
_OTHERWISE = "Whoever wrote the record has to mend it and write it again."


def kind_of(letter: DeadLetter) -> Kind:
    """Return what the value of *letter* holds."""
    if letter.reader == "view":
        return "row"
    if letter.code not in _OF_ROWS:
        return "record"
    if letter.code == "E_EXPRESSION" and _OPERATION not in (letter.value or b""):
        return "result"
    return "row"


def advice(letter: DeadLetter) -> str:
    """Return what to do about *letter*, in a sentence or two."""
    return _ADVICE.get((letter.code, kind_of(letter)), _OTHERWISE)
