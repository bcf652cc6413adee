"""docs/openapi.json and docs/asyncapi.json are as the code makes them."""

from __future__ import annotations

import pytest

from gateway.api.reference import DOCS, DOCUMENTS, text_of


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_document_is_as_the_code_makes_it(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == text_of(name), (
        "run `python -m gateway.api.reference`"
    )
