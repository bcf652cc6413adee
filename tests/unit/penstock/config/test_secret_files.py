"""Secrets in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.config.secret_files import read_secret
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("content", "secret"),
    [("abc", "abc"), ("abc\n", "abc"), ("abc\r\n", "abc"), (" a b \n", " a b "), ("", "")],
)
def test_a_secret_has_no_line_end(tmp_path: Path, content: str, secret: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content.encode())
    assert read_secret(path, "X") == secret


def test_a_file_that_cannot_be_read_names_the_variable(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError) as caught:
            read_secret(path, "PENSTOCK_X")
        assert str(path) in caught.value.message
        assert "set PENSTOCK_X" in caught.value.hint
