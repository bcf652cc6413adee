"""Distinct key rows → dense numbers, 0, 1, 2 … in order of first appearance, for ever."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class KeyIndex:
    """Distinct rows of some columns, numbered.

    Open addressing over two independent 64-bit hashes of a row. Keys are told apart by all 128
    bits, not by their values: among a million keys two would be taken for one with a chance of
    10^-27. Hashes are of this process and never saved.
    """

    def __init__(self, schema: dict[str, pl.DataType]) -> None:
        self.keys = pl.DataFrame(schema=schema)
        self._chunks = 0
        self._hashes = np.empty(16, np.uint64)
        self._checks = np.empty(16, np.uint64)
        self._table = np.full(64, -1, np.int32)

    def __len__(self) -> int:
        return self.keys.height

    def numbers(self, keys: pl.DataFrame) -> Numbers:
        """Number of each line of *keys*; unknown ones get the next free numbers in order of
        appearance.
        """
        hashes, checks = _hash(keys)
        found = self._find(hashes, checks)
        if len(found) and found.min() < 0:
            unknown = found < 0
            self._append(keys.filter(pl.Series(unknown)).unique(maintain_order=True))
            found[unknown] = self._find(hashes[unknown], checks[unknown])
        return found.astype(np.int64)

    def _find(self, hashes: Hashes, checks: Hashes) -> npt.NDArray[np.int32]:
        mask = len(self._table) - 1
        places = hashes.view(np.int64) & mask
        found: npt.NDArray[np.int32] = self._table.take(places)
        wrong = np.flatnonzero(self._differ(found, hashes, checks))
        wrong = wrong[found[wrong] >= 0]
        while len(wrong):
            places[wrong] = (places[wrong] + 1) & mask
            candidates = self._table.take(places[wrong])
            found[wrong] = candidates
            wrong = wrong[
                (candidates >= 0) & self._differ(candidates, hashes[wrong], checks[wrong])
            ]
        return found

    def _differ(
        self, numbers: npt.NDArray[np.int32], hashes: Hashes, checks: Hashes
    ) -> npt.NDArray[np.bool_]:
        """Whether each number is another key's; of no meaning where there is none (-1)."""
        other: npt.NDArray[np.bool_] = self._hashes.take(numbers, mode="wrap") != hashes
        other |= self._checks.take(numbers, mode="wrap") != checks
        return other

    def _append(self, fresh: pl.DataFrame) -> None:
        first = len(self)
        total = len(self) + fresh.height
        if total > len(self._hashes):
            room = np.empty(max(total, first) * 2 - first, np.uint64)
            self._hashes = np.concatenate([self._hashes[:first], room])
            self._checks = np.concatenate([self._checks[:first], room])
        self._hashes[first:total], self._checks[first:total] = _hash(fresh)
        self.keys = self.keys.vstack(fresh)
        self._chunks += 1
        if self._chunks > 16:
            self.keys = self.keys.rechunk()
            self._chunks = 0
        if total * 8 > len(self._table):
            self._table = np.full(1 << (total * 12).bit_length(), -1, np.int32)
            first = 0
        self._insert(np.arange(first, total, dtype=np.int32))

    def _insert(self, numbers: npt.NDArray[np.int32]) -> None:
        mask = len(self._table) - 1
        places = self._hashes[numbers].view(np.int64) & mask
        while len(numbers):
            free = self._table[places] < 0
            self._table[places[free]] = numbers[free]
            lost = self._table[places] != numbers
            numbers = numbers[lost]
            places = (places[lost] + 1) & mask


def _hash(keys: pl.DataFrame) -> tuple[Hashes, Hashes]:
    if keys.width > 1:
        return keys.hash_rows(1).to_numpy(), keys.hash_rows(2).to_numpy()
    both = keys.select(pl.first().hash(1).alias("h"), pl.first().hash(2).alias("c"))
    return both.get_column("h").to_numpy(), both.get_column("c").to_numpy()
