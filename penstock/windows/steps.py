"""Names of `clock` under which `fewwindows` knows them."""

from penstock.windows.clock import GroupClock
from penstock.windows.ticks import Mask

__all__ = ["GroupClock", "Mask"]
