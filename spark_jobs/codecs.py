"""Codecs of the catalog's tables, made once and again when a table has changed."""

from __future__ import annotations

from penstock.catalog.model import Table
from penstock.catalog.reader import CatalogReader
from penstock.codec import TableCodec


class Codecs:
    """Decoders of records and encoders of results, for all processors of the process."""

    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog
        #: by schema id
        self._decoders: dict[int, TableCodec] = {}
        #: by table id
        self._encoders: dict[int, TableCodec] = {}

    def decoder(self, schema_id: int) -> TableCodec | None:
        """Return the decoder of records under *schema_id*; None when no table that the catalog
        knows has it.
        """
        found = self._catalog.catalog.schema(schema_id)
        if found is None:
            return None
        table = found[0]
        known = self._decoders.get(schema_id)
        if known is None or known.table is not table:
            known = self._decoders[schema_id] = TableCodec(table, schema_id)
        return known

    def encoder(self, table_id: int) -> TableCodec | None:
        """Return the encoder of the newest version of a table; None when it is gone."""
        table: Table | None = self._catalog.catalog.table_by_id(table_id)
        if table is None:
            return None
        known = self._encoders.get(table_id)
        if known is None or known.table is not table:
            known = self._encoders[table_id] = TableCodec(table)
        return known
