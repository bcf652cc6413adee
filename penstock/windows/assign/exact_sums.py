"""Floats whose sums are exact, so that it does not matter in which order they are added.

A float is a whole number of some power of two. Where every number is a whole multiple of the same
one, sums are, too, and as long as they stay below 2^53 of it none is ever rounded. So it is with
FLOAT columns (24 bits, added up as doubles), with counts and with what a converter measured in
steps of 1/8. It is not so with most decimal fractions in DOUBLE columns: there the order counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
#: half of what a double holds, so that bounds may be rounded themselves
_MOST = 2.0**52
#: values that are looked at before all are
_SAMPLE = 256
_MANTISSA = (1 << 52) - 1
_SMALLEST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class ExactSums:
    """What is known of some numbers: all are whole multiples of *unit*, a power of two, and none is
    greater than *greatest*, whatever its sign.
    """

    unit: float
    greatest: float

    def are_exact(self, before: Floats, counts: npt.NDArray[Any]) -> bool:
        """Tell whether so many of the numbers may be added to each of *before* in any order."""
        bound = (np.abs(before) + self.greatest * counts).max(initial=0.0)
        if not bound <= _MOST * self.unit:
            return False
        steps = before / self.unit
        return bool((steps == np.rint(steps)).all())


def exact_sums(values: Floats) -> ExactSums | None:
    """Find out whether sums of *values* can be exact; None: they cannot."""
    if len(values) > _SAMPLE and _measure(values[:_SAMPLE]) is None:
        return None
    return _measure(values)


def _measure(values: Floats) -> ExactSums | None:
    sizes = np.abs(values)
    greatest = float(sizes.max(initial=0.0))
    if not np.isfinite(greatest):
        return None
    sizes = sizes[sizes != 0.0]
    if not len(sizes):
        return ExactSums(1.0, 0.0)
    if sizes.min() < _SMALLEST:
        return None
    unit = float(_lowest_bits(sizes).min())
    return ExactSums(unit, greatest) if greatest * 2 <= _MOST * unit else None


def _lowest_bits(sizes: Floats) -> Floats:
    """Of each number, positive and not denormal, the value of the lowest bit that is set in it."""
    bits = sizes.view(np.int64)
    without = (bits & (bits - 1)).view(np.float64)
    return np.where(bits & _MANTISSA, sizes - without, sizes)
