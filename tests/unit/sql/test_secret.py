from __future__ import annotations

import pytest

from penstock.errors import SqlError
from penstock.sql import parse
from penstock.sql.secret import hidden, masked

TEXTS = [
    "CREATE USER bob PASS 'hunter2 it''s'",
    'create user bob\n pass\t"hunter2"',
    "ALTER USER bob 'hunter2'",
    "alter user bob PASS 'hunter2",
    "CREATE EXTERNAL STREAM e (a INT) SETTINGS type='penstock', password='hunter2', token = \"hunter2\"",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_form_of_a_statement_shows_its_password(text: str) -> None:
    assert "hunter2" not in masked(text) and len(masked(text)) == len(text)
    assert "hunter2" not in hidden(text)
    assert text.split()[:3] == hidden(text).split()[:3]


def test_other_strings_stay() -> None:
    text = "INSERT INTO t VALUES (1, 'password', 'it''s')"
    assert masked(text) == hidden(text) == text


@pytest.mark.parametrize("text", [f"{t} nonsense (" for t in TEXTS[:4]])
def test_errors_do_not_show_it_either(text: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(f"SELECT 1;\n{text}")
    assert "hunter2" not in str(refused.value) and "hunter2" not in str(refused.value.to_dict())
