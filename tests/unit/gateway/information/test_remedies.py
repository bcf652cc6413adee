"""What a dead letter holds, and what to do about it."""

from __future__ import annotations

import pytest

from gateway.information.remedies import advice, kind_of
from penstock.records import DeadLetter


def letter(code: str, value: bytes = b"", reader: str = "stream") -> DeadLetter:
    return DeadLetter("in.d", 0, 1, reader, code, "why", 7, 12, value)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (letter("E_LATE", b'{"_op":0,"tbname":"t"}'), "row"),
        (letter("E_EXPRESSION", b'{"_offset":3,"_op":0,"tbname":"t"}'), "row"),
        (letter("E_EXPRESSION", b'{"tbname":"t","_wstart":1,"_wend":2}'), "result"),
        # a text that looks like an operation is none
        (letter("E_EXPRESSION", b'{"tbname":"\\"_op\\":","_wstart":1}'), "result"),
        (letter("E_WRONG_PARTITION", b'{"tbname":"t"}', "scan"), "row"),
        (letter("E_MALFORMED", b"\0\0\0\0\1", "store"), "record"),
        (letter("E_ROW", b"{}", "view"), "row"),
        (letter("E_ROW", b"{}", "federation"), "record"),
    ],
)
def test_what_a_letter_holds(made: DeadLetter, kind: str) -> None:
    assert kind_of(made) == kind


def test_a_result_is_not_sent_again_but_computed_again() -> None:
    said = advice(letter("E_EXPRESSION", b'{"tbname":"t","_wstart":1}'))
    assert "cannot be sent again" in said
    assert "RECALCULATE STREAM" in said


def test_each_code_has_its_own_advice_and_others_have_one_too() -> None:
    codes = {"E_MALFORMED", "E_UNKNOWN_SCHEMA", "E_MOVED", "E_POISON"}
    said = {advice(letter(code, reader="store")) for code in codes}
    assert len(said) == len(codes)
    assert (
        advice(letter("E_FUTURE")) == "Whoever wrote the record has to mend it and write it again."
    )
