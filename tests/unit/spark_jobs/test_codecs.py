"""Codecs are made once, and again for another version of a table."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.sql.plan import Duration
from spark_jobs.codecs import Codecs
from tests.unit.spark_jobs.processor_kit import SOURCE

SCHEMA = SOURCE.versions[0].schema_id


def codecs() -> tuple[Codecs, Catalog]:
    catalog = Catalog([Database(5, "db", partitions=1), SOURCE])
    reader: Any = SimpleNamespace(catalog=catalog)
    return Codecs(reader), catalog


def test_each_is_made_once() -> None:
    made, _ = codecs()
    decoder = made.decoder(SCHEMA)
    encoder = made.encoder(SOURCE.id)

    assert decoder is not None and decoder.table is SOURCE
    assert decoder is made.decoder(SCHEMA)
    assert encoder is not None and encoder is made.encoder(SOURCE.id)


def test_a_table_that_changed_has_others() -> None:
    made, catalog = codecs()
    old = (made.decoder(SCHEMA), made.encoder(SOURCE.id))
    changed = replace(SOURCE, keep=Duration(7, "d"))
    catalog.put(changed)

    new = (made.decoder(SCHEMA), made.encoder(SOURCE.id))

    assert new[0] is not old[0] and new[1] is not old[1]
    assert [codec.table for codec in new if codec is not None] == [changed, changed]


def test_a_table_that_is_gone_has_none() -> None:
    made, catalog = codecs()
    catalog.remove(SOURCE.id)

    assert made.decoder(SCHEMA) is None
    assert made.encoder(SOURCE.id) is None
